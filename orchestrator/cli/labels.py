"""Commands that add a label version and score on it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.app import app
from orchestrator.cli.options import CURRENT_FOLDER, AsJson, Workspace
from orchestrator.cli.standings import PANEL, EditionOption

labels = typer.Typer(help="Add label versions; old rows keep theirs.", no_args_is_help=True)
app.add_typer(labels, name="labels", rich_help_panel=PANEL)


@labels.command("add")
def labels_add(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="One JSON object per clip.")],
    edition: EditionOption,
    version: Annotated[str, typer.Option(help="A new version's name, as labels-v2.")],
    note: Annotated[str, typer.Option(help="A public remark, as: two Deaf annotators.")] = "",
    workspace: Workspace = CURRENT_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Validate, seal and commit to a new label version; nothing is scored anew by itself."""
    from orchestrator.cli.views.console import print_json, say
    from orchestrator.editions.labels_add import LabelTools, add_labels
    from orchestrator.keys.sealing_port import Purpose
    from orchestrator.support.files.input_files import read_input_file
    from orchestrator.wiring import workspaces as wiring

    data = read_input_file(file)
    opened = wiring.open_workspace(workspace)
    tools = LabelTools(
        store=opened.store,
        ledger=opened.ledger,
        sealer=opened.sealer,
        unsealer=opened.keyring.unsealer(Purpose.LABELS),
        clock=opened.clock,
    )
    added = add_labels(edition, version, data, source=str(file), note=note, tools=tools)
    if as_json:
        print_json({"edition": edition, **added.model_dump(mode="json")})
        return
    say(f"{added.version} of {edition}: sha256 {added.sha256}")
    say(f"Next: piste rescore --edition {edition} --labels {added.version}")


@app.command(rich_help_panel=PANEL)
def rescore(
    edition: EditionOption,
    labels: Annotated[
        str | None,
        typer.Option(help="A label version.", show_default="the one that was sealed"),
    ] = None,
    workspace: Workspace = CURRENT_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Score every completed run and submission on a label version: new rows, old rows stay."""
    from orchestrator.board.rescore import rescore as rescore_edition
    from orchestrator.cli.views.console import print_json, say
    from orchestrator.cli.views.progress import shown_progress
    from orchestrator.wiring import workspaces as wiring

    opened = wiring.open_workspace(workspace)
    with shown_progress(quiet=as_json) as reporter:
        rescored = rescore_edition(opened, edition, labels, reporter=reporter)
    rows = [
        {
            "run_id": one.run_id,
            "team": one.team,
            "new": not one.known,
            "score": one.card.public_document(),
        }
        for one in rescored
    ]
    if as_json:
        print_json({"edition": edition, "rows": rows})
        return
    new = sum(not one.known for one in rescored)
    say(f"{edition}: {len(rescored)} runs scored, {new} new rows")
    say(f"Next: piste board --edition {edition}" + (f" --labels {labels}" if labels else ""))
