"""`piste log`: the signed checkpoint to publish, and the proof that the log only grew."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.app import app
from orchestrator.cli.options import CURRENT_FOLDER, AsJson, Workspace

log = typer.Typer(
    help="Publish the log's checkpoint, and prove that the log only grew.", no_args_is_help=True
)
app.add_typer(log, name="log", rich_help_panel="Organizers")


@log.command("checkpoint")
def log_checkpoint(workspace: Workspace = CURRENT_FOLDER, as_json: AsJson = False) -> None:
    """Print the signed note (C2SP) over the present log, byte for byte.

    Publish it where you cannot rewrite it: a mailing list, a git tag, a time stamp. Whoever keeps
    one can check later that nothing before it was changed: piste verify --checkpoint FILE.
    """
    from orchestrator.cli.views.console import print_json
    from orchestrator.ledger.rules.checkpoint import parse_checkpoint
    from orchestrator.wiring.workspaces import open_workspace

    note = open_workspace(workspace).ledger.checkpoint()
    if not as_json:
        sys.stdout.buffer.write(note)
        sys.stdout.flush()
        return
    signed = parse_checkpoint(note, source="checkpoint").checkpoint
    print_json(
        {
            "origin": signed.origin,
            "size": signed.size,
            "root": signed.root.hex(),
            "note": note.decode("utf-8"),
        }
    )


@log.command("consistency")
def log_consistency(
    older: Annotated[
        Path,
        typer.Option(
            "--from", metavar="FILE", help="A checkpoint that was kept.", show_default=False
        ),
    ],
    workspace: Workspace = CURRENT_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Prove that the present log extends the one of an older checkpoint (RFC 6962)."""
    from orchestrator.cli.views.console import print_json, say
    from orchestrator.support.files.input_files import read_input_file
    from orchestrator.wiring.workspaces import open_workspace
    from orchestrator.workspace.log_consistency import prove_consistency

    note = read_input_file(older)
    proven = prove_consistency(note, source=str(older), ledger=open_workspace(workspace).ledger)
    if as_json:
        print_json(
            {
                "origin": proven.newer.origin,
                "older": {"size": proven.older.size, "root": proven.older.root.hex()},
                "newer": {"size": proven.newer.size, "root": proven.newer.root.hex()},
                "checkpoint": proven.newer_note.decode("utf-8"),
                "proof": [digest.hex() for digest in proven.proof],
            }
        )
        return
    say(f"the log of {proven.newer.size} statements extends the one of {proven.older.size}")
    for digest in proven.proof:
        say(f"  {digest.hex()}")
