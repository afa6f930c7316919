"""`piste doctor`: may this host do certified runs, and what would help."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from orchestrator.cli.app import app
from orchestrator.cli.options import CURRENT_FOLDER, AsJson, Workspace

if TYPE_CHECKING:
    from orchestrator.host.doctor import DoctorReport

EXIT_DOES_NOT_HOLD = 1
EXIT_NO_ENGINE = 4


@app.command(rich_help_panel="Organizers")
def doctor(
    profile: Annotated[
        Literal["certified", "strict", "gvisor"] | None,
        typer.Option(help="Examine this profile alone.", show_default="all; certified decides"),
    ] = None,
    workspace: Workspace = CURRENT_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Examine this host: engine, sandbox, limits, GPU, disk, clock, leftovers; each with a remedy.

    Every limit is probed in a container, and nothing is changed. Exit code 0: certified runs may be
    done here; 1: not now, and the table says why; 4: no Docker engine answers.
    """
    from orchestrator.cli.views.doctor_view import doctor_document, doctor_view
    from orchestrator.wiring import workspaces as wiring
    from sandbox_profiles.profile import ShippedProfile

    names = tuple(ShippedProfile) if profile is None else (ShippedProfile(profile),)
    report = wiring.examine(workspace, names)
    if as_json:
        from orchestrator.cli.views.console import print_json

        print_json(doctor_document(report))
    else:
        from rich.console import Console

        Console(highlight=False).print(doctor_view(report, first=names[0]))
    _exit_for(report, names[0])


def _exit_for(report: DoctorReport, profile: str) -> None:
    if report.engine is None:
        raise typer.Exit(EXIT_NO_ENGINE)
    if not report.may_run(profile):
        raise typer.Exit(EXIT_DOES_NOT_HOLD)
