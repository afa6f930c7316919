"""`piste sample` and `piste build-image`: something to run and something to run it with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from orchestrator.cli.app import app
from orchestrator.cli.options import AsJson

PANEL = "Entrants"
Track = Literal["recognition", "translation", "segmentation"]


@app.command(rich_help_panel=PANEL)
def sample(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder.")],
    track: Annotated[Track, typer.Option(help="The exam.")] = "recognition",
    clips: Annotated[int, typer.Option(min=1, max=10_000, help="How many clips.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="The generator's seed.")] = 200,
    edition: Annotated[str, typer.Option(help="The edition's name.")] = "sample",
    consumer: Annotated[
        str | None, typer.Option(help="Segmentation: the frozen recognizer, repo@sha256:….")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a sample edition in the Épée layout: clips that move, labels, edition.yaml."""
    from orchestrator.cli.views.console import print_json, say
    from orchestrator.wiring import samples as sample_wiring

    made = sample_wiring.make_sample(
        folder, track=track, clips=clips, seed=seed, edition=edition, consumer=consumer
    )
    if as_json:
        print_json(made.model_dump(mode="json"))
        return
    say(f"{folder}/edition.yaml: {made.expected_clips} clips, {made.track}")
    say(f"Next: piste seal {folder}/edition.yaml, or piste dry-run IMAGE --clips {folder}")


@app.command("build-image", rich_help_panel=PANEL)
def build_image(
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="The program's folder; it becomes /app.")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The archive to write.")] = Path(
        "image.tar"
    ),
    main: Annotated[str, typer.Option(help="The file that is run.")] = "main.py",
    with_: Annotated[
        list[str] | None,
        typer.Option("--with", help="An installed distribution to bring along, as numpy."),
    ] = None,
    baseline: Annotated[
        Track | None, typer.Option(help="Build the shipped baseline of this track instead.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Build an image archive from this machine's own Python: no registry, no Docker."""
    from orchestrator.cli.views.console import print_json, say
    from orchestrator.wiring import samples as sample_wiring

    if (folder is None) == (baseline is None):
        raise typer.BadParameter("give a folder or --baseline TRACK, one of them")
    if baseline is not None:
        built = sample_wiring.build_baseline(baseline, output)
    else:
        assert folder is not None
        built = sample_wiring.build_program(
            folder, output, main=main, distributions=tuple(with_ or ())
        )
    if as_json:
        print_json({"archive": str(built.path), "image_id": built.image_id, "files": built.files})
        return
    say(f"{built.path}: {built.image_id}")
    say(f"Next: piste dry-run {built.path}")
