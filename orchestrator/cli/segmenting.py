"""`piste segments`: controlled edits, selection on validation, and its application to test."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from orchestrator.cli.app import app
from orchestrator.cli.options import AsJson

if TYPE_CHECKING:
    from orchestrator.scoring.score_files import InputFile
    from orchestrator.scoring.segment_tools import CandidateFiles
    from scorers.segmentation.held_out import HeldOutReport

segments = typer.Typer(
    help="Segmentation: edit gold boundaries, select on validation, score on test.",
    no_args_is_help=True,
)
app.add_typer(segments, name="segments", rich_help_panel="For everybody")

EditName = Literal[
    "erosion",
    "dilation",
    "jitter",
    "deletion",
    "merge",
    "split",
    "iou-inner",
    "iou-outer",
    "frames-inner",
    "frames-outer",
]
Labels = Annotated[Path, typer.Option(help="Segmentation labels, one JSON object per line.")]
Vocabulary = Annotated[Path, typer.Option(help="The consumer's glosses, one per line.")]
Candidates = Annotated[
    list[str],
    typer.Option(
        "--candidate",
        help="NAME=PREDICTIONS.jsonl,CONSUMER.jsonl; the declared order settles ties.",
    ),
]


@segments.command()
def edit(
    labels: Labels,
    kind: Annotated[EditName, typer.Option(help="The edit.")],
    size: Annotated[int, typer.Option(help="Frames; percent for deletion, merge, split and iou.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The predictions file to write.")],
    seed: Annotated[int, typer.Option(min=0, help="Seed of what is drawn.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Write edited gold segments as a predictions file; the frozen consumer can then label them.

    Outer windows may overlap; then further files are written beside the first, as NAME.2.jsonl.
    """
    from orchestrator.cli.views.console import print_json, say
    from orchestrator.samples.files.sample_folder import SampleFolder
    from orchestrator.scoring.segment_tools import Edit, edit_labels

    made = edit_labels(_read(labels), Edit(kind), size, seed=seed)
    names = [output.name, *(f"{output.stem}.{n}{output.suffix}" for n in range(2, len(made) + 1))]
    _refuse_existing(output.parent / name for name in names)
    write = SampleFolder(output.parent)
    for name, file in zip(names, made, strict=True):
        write(name, file.data)
    rows = [
        {"file": str(output.parent / name), "segments": file.segments, "exact": file.exact}
        for name, file in zip(names, made, strict=True)
    ]
    if as_json:
        print_json({"edit": kind, "size": size, "seed": seed, "files": rows})
        return
    for row in rows:
        say(f"{row['file']}: {row['segments']} segments, {row['exact']} exactly as asked")


@segments.command()
def select(
    labels: Labels,
    vocabulary: Vocabulary,
    candidate: Candidates,
    output: Annotated[Path, typer.Option("--output", "-o", help="The manifest to write.")],
    as_json: AsJson = False,
) -> None:
    """Choose segmenters on VALIDATION labels and write the choice to a manifest."""
    from orchestrator.cli.views.console import print_json, say
    from orchestrator.samples.files.sample_folder import SampleFolder
    from orchestrator.scoring.segment_tools import select as select_candidates

    _refuse_existing([output])
    manifest = select_candidates(_read(labels), _read(vocabulary), _candidates(candidate))
    SampleFolder(output.parent)(output.name, manifest.as_bytes())
    if as_json:
        print_json(manifest.model_dump(mode="json"))
        return
    for objective, name in manifest.selected.items():
        say(f"{objective:<8} {name or 'none: undefined for every candidate'}")
    say(f"Next: piste segments test --manifest {output} with the test labels")


@segments.command("test")
def apply_to_test(
    manifest: Annotated[Path, typer.Option(help="What `piste segments select` wrote.")],
    labels: Labels,
    vocabulary: Vocabulary,
    candidate: Candidates,
    as_json: AsJson = False,
) -> None:
    """Score on TEST labels what the manifest selected, with its frozen thresholds."""
    from orchestrator.cli.views.console import print_json
    from orchestrator.scoring.segment_tools import apply_selection

    report = apply_selection(
        _read(manifest), _read(labels), _read(vocabulary), _candidates(candidate)
    )
    if as_json:
        print_json(_document(report))
        return
    from rich.console import Console

    from orchestrator.cli.views.score_card import score_card

    console = Console(highlight=False)
    for objective, card in report.cards.items():
        console.print(score_card(card.as_document(), title=f"selected by {objective.value}"))
    for line in _change_lines(report):
        console.print(line)
    if report.joint is not None:
        console.print(score_card(report.joint.as_document(), title="joint WER_IV diagnostic"))


def _change_lines(report: HeldOutReport) -> Iterator[str]:
    """Yield what each other objective's choice changes against the choice of mF1S."""
    for objective, changes in report.changes.items():
        for figure, change in changes.items():
            yield (
                f"{objective.value} instead of mf1s: {figure.value} {100 * change.delta:+.1f} "
                f"points, 95% {100 * change.low:+.1f} to {100 * change.high:+.1f}, "
                f"{change.units} signers"
            )


def _document(report: HeldOutReport) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "cards": {objective.value: card.as_document() for objective, card in report.cards.items()},
        "changes": {
            objective.value: {figure.value: asdict(each) for figure, each in changes.items()}
            for objective, changes in report.changes.items()
        },
        "joint": None if report.joint is None else report.joint.as_document(),
    }


def _refuse_existing(files: Iterable[Path]) -> None:
    from manifests.errors import RefusedByPolicy

    for file in files:
        if file.exists():
            raise RefusedByPolicy(f"{file}: is there already; name a new file")


def _read(path: Path) -> InputFile:
    from orchestrator.scoring.score_files import InputFile
    from orchestrator.support.files.input_files import read_input_file

    return InputFile(str(path), read_input_file(path))


def _candidates(texts: list[str]) -> list[CandidateFiles]:
    from orchestrator.scoring.segment_tools import CandidateFiles, parse_candidate

    parsed = [parse_candidate(text) for text in texts]
    return [
        CandidateFiles(name, _read(Path(predictions)), _read(Path(consumer)))
        for name, predictions, consumer in parsed
    ]
