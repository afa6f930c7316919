"""Commands that make a workspace, seal an edition and register teams."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from orchestrator.cli.app import app
from orchestrator.cli.options import CURRENT_FOLDER, AsJson, Workspace

PANEL = "Organizers"
team = typer.Typer(help="Register the teams that may enter.", no_args_is_help=True)
app.add_typer(team, name="team", rich_help_panel=PANEL)

DataTrack = Literal["open-data", "private-data"]


@app.command(rich_help_panel=PANEL)
def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder.")],
    origin: Annotated[
        str | None,
        typer.Option(
            help="The log's public name, as example.org/epee.",
            show_default="piste.local/ and a random name",
        ),
    ] = None,
    passphrase_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A file of mode 0600 with one line: the passphrase that protects the keys.",
            show_default="PISTE_KEY_PASSPHRASE_FILE, or no passphrase",
        ),
    ] = None,
    ask_passphrase: Annotated[
        bool, typer.Option("--ask-passphrase", help="Ask for that passphrase on the terminal.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make a workspace: keys, ledger, folders.

    A passphrase protects signing keys and age identities alike. Later commands read it from the
    file that PISTE_KEY_PASSPHRASE_FILE names, or ask for it on the terminal.
    """
    from orchestrator.cli.views.console import print_json, say
    from orchestrator.wiring.keys import new_passphrase
    from orchestrator.wiring.workspaces import create_workspace

    secret = new_passphrase(passphrase_file, ask=ask_passphrase)
    made = create_workspace(folder, origin=origin, passphrase=secret)
    if as_json:
        keys = [key.model_dump(mode="json") for key in made.keys]
        print_json({"workspace": str(made.root), "keys": keys})
        return
    say(f"workspace {made.root}")
    for key in made.keys:
        say(f"  {key.role:<7}{key.algorithm:<12}{key.key_id}")
    say("Keep a copy of its keys/ folder elsewhere: what they seal, nobody opens without them.")
    say("Next: piste seal EDITION.yaml")


@app.command(rich_help_panel=PANEL)
def seal(
    edition: Annotated[Path, typer.Argument(metavar="EDITION.yaml", help="The edition's file.")],
    workspace: Workspace = CURRENT_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Seal an edition: validate, rename, encrypt and commit to clips and labels, all or nothing."""
    from orchestrator.cli.views.console import print_json, say
    from orchestrator.cli.views.progress import shown_progress
    from orchestrator.wiring import workspaces as wiring

    opened = wiring.open_workspace(workspace)
    with shown_progress(quiet=as_json) as reporter:
        sealed = wiring.seal(opened, edition, reporter)
    if as_json:
        print_json(sealed.model_dump(mode="json"))
        return
    say(f"sealed {sealed.edition}: {sealed.clips} clips")
    say(f"  clip set  sha256 {sealed.clip_set_sha256}")
    for labels in sealed.labels:
        say(f"  {labels.version} sha256 {labels.sha256}")
    say("Publish both digests before the first run. Next: piste team add NAME")


@team.command("add")
def team_add(
    name: Annotated[str, typer.Argument(help="2 to 40 of a-z, 0-9 and -.")],
    organizer: Annotated[
        bool, typer.Option("--organizer", help="The organizer's own team: never certified.")
    ] = False,
    track: Annotated[
        DataTrack, typer.Option(help="What the team's models were trained on.")
    ] = "open-data",
    workspace: Workspace = CURRENT_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Register a team."""
    from orchestrator.cli.views.console import print_json, say
    from orchestrator.wiring import workspaces as wiring
    from orchestrator.workspace.add_team import add_team

    opened = wiring.open_workspace(workspace)
    entry = add_team(
        name, organizer=organizer, data_track=track, ledger=opened.ledger, clock=opened.clock
    )
    if as_json:
        print_json(entry.statement.model_dump(mode="json"))
        return
    say(f"team {name} may enter, {track}" + (", as the organizer" if organizer else ""))
