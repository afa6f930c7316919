"""`piste new`: a starter kit for an entrant."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from orchestrator.cli.app import app
from orchestrator.cli.options import AsJson


@app.command(rich_help_panel="Entrants")
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The folder to make, as my-entry.")],
    track: Annotated[
        Literal["recognition", "translation", "segmentation"], typer.Option(help="The exam.")
    ],
    as_json: AsJson = False,
) -> None:
    """Start an entry: a small program that passes a dry run as it is, with all to build it."""
    from orchestrator.cli.views.console import print_json, say
    from orchestrator.samples.new_kit import new_kit
    from orchestrator.support.files.new_folder import create_folder

    made = new_kit(Path(), name, track, create=create_folder)
    if as_json:
        document = {"folder": str(made.folder), "track": made.track, "files": list(made.files)}
        print_json(document)
        return
    say(f"{made.folder}: a {made.track} entry that works as it is; start with its README.md")
    say(f"Next: cd {made.folder} && make build-offline && make dry-run")
