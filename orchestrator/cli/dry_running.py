"""`piste dry-run`: an entrant's own certified run, before one is spent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from orchestrator.cli.app import app
from orchestrator.cli.options import AsJson

if TYPE_CHECKING:
    from orchestrator.entrants.dry_run import DryRunTools
    from orchestrator.entrants.dry_run_input import DryRunInput
    from orchestrator.entrants.dry_run_report import DryRunRefusal, DryRunReport
    from orchestrator.entrants.dry_run_watch import DryRunDisplay
    from orchestrator.scoring.score_files import InputFile
    from sandbox_profiles.profile import SandboxProfile

Track = Literal["recognition", "translation", "segmentation"]
SAMPLE_CLIPS = 12
SAMPLE_SEED = 12


@app.command("dry-run", rich_help_panel="Entrants")
def dry_run(
    image: Annotated[
        str,
        typer.Argument(
            metavar="IMAGE|ARCHIVE.tar",
            help="registry/repository:tag or @sha256:…, engine:NAME, or an archive.",
        ),
    ],
    clips: Annotated[
        Path | None,
        typer.Option(
            help="A folder in the Épée layout.", show_default=f"a sample of {SAMPLE_CLIPS} clips"
        ),
    ] = None,
    track: Annotated[
        Track | None,
        typer.Option(help="The exam.", show_default="the folder's edition.yaml, or recognition"),
    ] = None,
    profile: Annotated[
        str, typer.Option(help="certified, strict, gvisor, or a profile's path.")
    ] = "certified",
    repeat: Annotated[
        int, typer.Option(min=1, max=10, help="Run it so often, and compare the answers.")
    ] = 1,
    labels: Annotated[
        Path | None,
        typer.Option(help="Labels to score by.", show_default="labels-v1.jsonl in the folder"),
    ] = None,
    gpu: Annotated[
        Literal["required", "optional", "forbidden"],
        typer.Option(help="As the edition says; optional takes one where there is one."),
    ] = "optional",
    second_pass: Annotated[
        bool,
        typer.Option(
            "--second-pass/--no-second-pass",
            help="After a failure, run once more with a writable root to see where it writes.",
        ),
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Run an image on open clips under exactly the certified conditions, and say what fails.

    Needs no workspace, keys or ledger. Exit codes as `certify`.
    """
    from orchestrator.cli.views.dry_run_view import shown_dry_run
    from orchestrator.entrants.dry_run import dry_run as run
    from orchestrator.sandbox.rules.gpu import GpuPolicy

    limits = _profile(profile)
    with _exam(clips, track, labels) as exam, shown_dry_run(limits, quiet=as_json) as display:
        request = exam.request(image, profile=limits, gpu=GpuPolicy(gpu), repeat=repeat)
        done = run(_tools(display), exam, request, second_pass=second_pass)
    _show(done, as_json=as_json)
    raise typer.Exit(done.exit_code)


def _tools(display: DryRunDisplay) -> DryRunTools:
    from orchestrator.entrants.dry_run import DryRunTools
    from orchestrator.entrants.proc.container_window import ProcWindows
    from orchestrator.support.system_clock import SystemClock
    from orchestrator.wiring import workspaces as wiring

    return DryRunTools(
        host=wiring.run_host(wiring.docker_engine()),
        clock=SystemClock(),
        windows=ProcWindows(),
        display=display,
    )


def _profile(name: str) -> SandboxProfile:
    from orchestrator.support.files.input_files import read_input_file
    from sandbox_profiles.profile import ShippedProfile, load_profile, parse_profile

    if name in set(ShippedProfile):
        return load_profile(name)
    return parse_profile(read_input_file(Path(name)), name)


@contextmanager
def _exam(clips: Path | None, track: Track | None, labels: Path | None) -> Iterator[DryRunInput]:
    """Yield the exam; without a folder of one's own a sample that goes with the dry run."""
    import tempfile

    if clips is not None:
        yield _read(clips, track, _file(labels))
        return
    with tempfile.TemporaryDirectory(prefix="piste-sample-") as folder:
        root = Path(folder) / "sample"
        _make_sample(root, track or "recognition")
        yield _read(root, track, _file(labels))


def _make_sample(root: Path, track: Track) -> None:
    from orchestrator.wiring import samples as sample_wiring

    consumer = None
    if track == "segmentation":  # the edition names one; a dry run has none
        consumer = f"example.org/frozen-recognizer@sha256:{'0' * 64}"
    sample_wiring.make_sample(
        root,
        track=track,
        clips=SAMPLE_CLIPS,
        seed=SAMPLE_SEED,
        edition="dry-run-sample",
        consumer=consumer,
    )


def _read(folder: Path, track: Track | None, labels: InputFile | None) -> DryRunInput:
    from orchestrator.editions.epee.epee_folder import EpeeFolder
    from orchestrator.entrants.dry_run_input import read_dry_run_input
    from orchestrator.support.files.input_files import read_input_file

    def read(name: str) -> bytes | None:
        path = folder / name
        return read_input_file(path) if path.exists() else None

    return read_dry_run_input(EpeeFolder(folder), read, track=track, labels=labels)


def _file(path: Path | None) -> InputFile | None:
    from orchestrator.scoring.score_files import InputFile
    from orchestrator.support.files.input_files import read_input_file

    return None if path is None else InputFile(str(path), read_input_file(path))


def _show(done: DryRunReport | DryRunRefusal, *, as_json: bool) -> None:
    if as_json:
        from orchestrator.cli.views.console import print_json

        print_json(done.document())
        return
    from orchestrator.cli.views.dry_run_view import refusal_view, result_console, verdict_view
    from orchestrator.entrants.dry_run_report import DryRunRefusal

    console = result_console()
    if isinstance(done, DryRunRefusal):
        console.print(refusal_view(done))
        return
    if done.card is not None:
        from orchestrator.cli.views.score_card import score_card

        console.print(score_card(done.card.as_document(), title=f"score card · {done.exam.track}"))
    console.print(verdict_view(done))
