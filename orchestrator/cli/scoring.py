"""`piste score`: figures from files alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from orchestrator.cli.app import app
from orchestrator.cli.options import AsJson

if TYPE_CHECKING:
    from orchestrator.scoring.score_files import InputFile, PoseFiles

Track = Literal["recognition", "translation", "segmentation"]

EXIT_INCOMPLETE = 1
"""The predictions lack a clip: the card says which, and holds no figure."""


@app.command(rich_help_panel="For everybody")
def score(
    track: Annotated[Track, typer.Option(help="The exam.")],
    labels: Annotated[Path, typer.Option(help="The labels, one JSON object per line.")],
    predictions: Annotated[Path, typer.Option(help="The predictions, one JSON object per line.")],
    vocabulary: Annotated[
        Path | None, typer.Option(help="Recognition, segmentation: one gloss per line.")
    ] = None,
    pose: Annotated[
        Path | None, typer.Option(help="Translation: a folder of <clip>.npy that was predicted.")
    ] = None,
    reference_pose: Annotated[
        Path | None, typer.Option(help="Translation: a folder of <clip>.npy to compare with.")
    ] = None,
    bleurt_checkpoint: Annotated[
        Path | None, typer.Option(help="Translation: a local checkpoint's folder (extra bleurt).")
    ] = None,
    bleurt_scores: Annotated[
        Path | None, typer.Option(help="Translation: precomputed segment scores.")
    ] = None,
    consumer: Annotated[
        Path | None,
        typer.Option(help="Segmentation: the frozen consumer's answers, as recognition."),
    ] = None,
    held_out: Annotated[
        str | None, typer.Option(help="Recognition: the signer absent from public data.")
    ] = None,
    resamples: Annotated[
        int | None, typer.Option(min=100, max=1_000_000, help="Bootstrap resamples.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="The bootstrap's seed.")] = None,
    as_json: AsJson = False,
) -> None:
    """Score a predictions file; needs no workspace and no Docker."""
    from orchestrator.scoring.score_files import FilesToScore, score_files

    card = score_files(
        FilesToScore(
            track=track,
            labels=_required(labels),
            predictions=_required(predictions),
            vocabulary=_file(vocabulary),
            poses=_poses(pose),
            reference_poses=_poses(reference_pose),
            bleurt_scores=_file(bleurt_scores),
            bleurt_checkpoint=bleurt_checkpoint,
            consumer=_file(consumer),
            held_out_signer=held_out,
            resamples=resamples,
            seed=seed,
        )
    )
    _show(card.as_document(), as_json=as_json)
    if not card.complete:
        raise typer.Exit(EXIT_INCOMPLETE)


def _show(document: dict[str, object], *, as_json: bool) -> None:
    if as_json:
        from orchestrator.cli.views.console import print_json

        print_json(document)
        return
    from rich.console import Console

    from orchestrator.cli.views.score_card import score_card

    Console(highlight=False).print(score_card(document, title="score card"))


def _required(path: Path) -> InputFile:
    from orchestrator.scoring.score_files import InputFile
    from orchestrator.support.files.input_files import read_input_file

    return InputFile(str(path), read_input_file(path))


def _file(path: Path | None) -> InputFile | None:
    return None if path is None else _required(path)


def _poses(folder: Path | None) -> PoseFiles | None:
    if folder is None:
        return None
    from orchestrator.scoring.score_files import PoseFiles
    from orchestrator.support.files.input_files import list_input_folder

    names = tuple(path.stem for path in list_input_folder(folder, suffix=".npy"))
    return PoseFiles(clip_ids=names, read=lambda name: _required(folder / f"{name}.npy"))
