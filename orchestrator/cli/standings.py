"""Commands around the board: show it, hand in predictions, review what was handed in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from orchestrator.cli.app import app
from orchestrator.cli.options import CURRENT_FOLDER, AsJson, Workspace

PANEL = "Organizers"

EditionOption = Annotated[str, typer.Option("--edition", "-e", help="A sealed edition.")]


@app.command(rich_help_panel=PANEL)
def board(
    edition: EditionOption,
    labels: Annotated[
        str | None,
        typer.Option(help="A label version.", show_default="the one that was sealed"),
    ] = None,
    qualifier: Annotated[
        str | None,
        typer.Option(help="For a Final: its Qualifier.", show_default="the only one that fits"),
    ] = None,
    final: Annotated[
        str | None,
        typer.Option(help="For a Qualifier: its Final.", show_default="the only one that fits"),
    ] = None,
    track: Annotated[
        Literal["all", "open-data"],
        typer.Option(help="open-data leaves rows trained on private data out."),
    ] = "all",
    workspace: Workspace = CURRENT_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Show an edition's board: ranked rows, ties, gaps, what is held and what is not ranked."""
    from manifests.errors import MalformedDocument
    from orchestrator.board.show_board import BoardRequest, show_board
    from orchestrator.wiring import workspaces as wiring

    if qualifier is not None and final is not None:
        raise MalformedDocument("give --qualifier for a Final, or --final for a Qualifier")
    request = BoardRequest(
        edition=edition, labels_version=labels, other_round=qualifier or final, view=track
    )
    document = show_board(wiring.open_workspace(workspace), request).as_document()
    if as_json:
        from orchestrator.cli.views.console import print_json

        print_json(document)
        return
    from rich.console import Console

    from orchestrator.cli.views.board_table import board_table

    Console(highlight=False).print(board_table(document))


@app.command(rich_help_panel=PANEL)
def submit(
    predictions: Annotated[Path, typer.Argument(help="The predictions, one JSON object per line.")],
    edition: EditionOption,
    team: Annotated[str, typer.Option("--team", "-t", help="A registered team.")],
    training_data: Annotated[
        Literal["open-data", "private-data"] | None,
        typer.Option(
            help="What the model was trained on.", show_default="what the team registered"
        ),
    ] = None,
    note: Annotated[str, typer.Option(help="A public line on the training data.")] = "",
    workspace: Workspace = CURRENT_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Hand in predictions on an open qualifier: self-reported, rate-limited, reviewed."""
    from orchestrator.board.submit_predictions import Submission, submit_predictions
    from orchestrator.cli.views.progress import shown_progress
    from orchestrator.support.files.input_files import read_input_file
    from orchestrator.wiring import workspaces as wiring

    submission = Submission(
        edition=edition,
        team=team,
        data=read_input_file(predictions),
        source=str(predictions),
        training_data=training_data,
        note=note,
    )
    opened = wiring.open_workspace(workspace)
    with shown_progress(quiet=as_json) as reporter:
        done = submit_predictions(opened, submission, reporter=reporter)
    recorded = done.recorded.model_dump(mode="json")
    score = None if done.card is None else done.card.public_document()
    document = {**recorded, "score": score, "unscored": done.unscored}
    _show_submission(document, as_json=as_json)


def _show_submission(document: dict[str, object], *, as_json: bool) -> None:
    from orchestrator.cli.views.console import print_json, say

    if as_json:
        print_json(document)
        return
    score = document["score"]
    if isinstance(score, dict):
        from rich.console import Console

        from orchestrator.cli.views.score_card import score_card

        Console(highlight=False).print(score_card(score, title="score card · self-reported"))
    else:
        say(f"not scored: {document['unscored']}")
    say(f"recorded as run {document['run_id']}; it appears on the board after")
    say(f"  piste review {document['run_id']} accept --reason TEXT")


@app.command(rich_help_panel=PANEL)
def review(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A submission's run id.")],
    decision: Annotated[
        Literal["accept", "decline", "ask-final"],
        typer.Argument(help="ask-final holds the row until a Final run of the team."),
    ],
    reason: Annotated[str, typer.Option(help="Why; it is public.")],
    workspace: Workspace = CURRENT_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Accept or decline a self-reported row, or ask its team for a Final run."""
    from orchestrator.board.review_submission import review_submission
    from orchestrator.cli.views.console import print_json, say
    from orchestrator.wiring import workspaces as wiring

    reviewed = review_submission(wiring.open_workspace(workspace), run, decision, reason=reason)
    if as_json:
        print_json(reviewed.model_dump(mode="json"))
        return
    say(f"run {reviewed.run_id} of team {reviewed.team} in {reviewed.edition}: {decision}")
