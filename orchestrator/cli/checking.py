"""`piste check`: would these predictions be scored? Needs no Docker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from orchestrator.cli.app import app
from orchestrator.cli.options import AsJson

if TYPE_CHECKING:
    from manifests.editions import Track
    from orchestrator.entrants.check_predictions import PredictionsReport

EXIT_DOES_NOT_HOLD = 1
POSES = "pose"
EDITION_FILE = "edition.yaml"


@app.command(rich_help_panel="Entrants")
def check(
    predictions: Annotated[
        Path, typer.Argument(metavar="PREDICTIONS", help="A predictions.jsonl.")
    ],
    clips: Annotated[
        Path, typer.Option(metavar="DIR", help="The clips' folder in the Épée layout.")
    ],
    track: Annotated[
        Literal["recognition", "translation", "segmentation"] | None,
        typer.Option(help="The exam.", show_default="as edition.yaml in DIR says"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check a predictions file as a run would, and list all that is wrong, by clip and line.

    Translation: a folder `pose` beside the file is checked with it.
    """
    from orchestrator.editions.epee.epee_folder import EpeeFolder
    from orchestrator.entrants.check_predictions import check_predictions
    from orchestrator.support.files.input_files import read_input_file

    exam = track or _track_of(clips)
    report = check_predictions(
        read_input_file(predictions),
        EpeeFolder(clips),
        track=exam,
        source=predictions.name,
        poses=_poses(predictions.parent / POSES) if exam == "translation" else (),
    )
    _show(report, predictions, as_json=as_json)
    if not report.holds:
        raise typer.Exit(EXIT_DOES_NOT_HOLD)


def _track_of(clips: Path) -> Track:
    from manifests.editions import parse_edition
    from manifests.errors import MalformedDocument
    from orchestrator.support.files.input_files import read_input_file

    edition = clips / EDITION_FILE
    if not edition.exists():
        raise MalformedDocument(
            f"{clips}: has no {EDITION_FILE} that names the exam; say which with --track"
        )
    return parse_edition(read_input_file(edition), source=str(edition)).track


def _poses(folder: Path) -> Iterator[tuple[str, bytes]]:
    from orchestrator.support.files.input_files import list_input_folder, read_input_file

    if folder.exists():
        for path in list_input_folder(folder, suffix=""):
            yield path.name, read_input_file(path)


def _show(report: PredictionsReport, predictions: Path, *, as_json: bool) -> None:
    from orchestrator.cli.views.check_view import check_document, check_view

    if as_json:
        from orchestrator.cli.views.console import print_json

        print_json(check_document(report, predictions))
        return
    from rich.console import Console

    Console(highlight=False).print(check_view(report, predictions))
