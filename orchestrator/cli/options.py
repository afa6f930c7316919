"""The options that every command shares."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Workspace = Annotated[
    Path,
    typer.Option(
        "--workspace",
        "-w",
        envvar="PISTE_WORKSPACE",
        help="The workspace folder.",
        show_default="the current folder",
    ),
]
"""A workspace folder; default: PISTE_WORKSPACE, then the current folder."""

AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else there.")
]

CURRENT_FOLDER = Path()
