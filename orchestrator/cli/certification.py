"""`piste certify` and `piste runs`: run images on sealed editions, and look after the runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.app import app
from orchestrator.cli.options import CURRENT_FOLDER, AsJson, Workspace

if TYPE_CHECKING:
    from manifests.runs import RunRecord

PANEL = "Organizers"
runs = typer.Typer(help="List, show, void and pick up runs.", no_args_is_help=True)
app.add_typer(runs, name="runs", rich_help_panel=PANEL)

EXIT_NOT_COMPLETED = 1
EXIT_OUR_SIDE = 4


@app.command(rich_help_panel=PANEL)
def certify(
    image: Annotated[
        str,
        typer.Argument(
            metavar="IMAGE|ARCHIVE.tar",
            help="registry/repository@sha256:…, or an archive of docker save or an OCI layout.",
        ),
    ],
    edition: Annotated[str, typer.Option(help="The sealed edition.")],
    team: Annotated[str, typer.Option(help="The team whose run it is.")],
    repeat: Annotated[
        int, typer.Option(min=1, max=10, help="Run it so often inside one run, and compare.")
    ] = 1,
    workspace: Workspace = CURRENT_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Run an image on a sealed edition and record everything; uses one of the team's runs."""
    from orchestrator.cli.views.console import print_json
    from orchestrator.cli.views.progress import shown_progress
    from orchestrator.runs.certify import CertifyRequest
    from orchestrator.runs.certify import certify as certify_run
    from orchestrator.runs.rules.run_report import run_document
    from orchestrator.wiring import workspaces as wiring

    opened = wiring.open_workspace(workspace)
    request = CertifyRequest(edition=edition, team=team, image=image, repeat=repeat)
    with shown_progress(quiet=as_json) as reporter:
        host = wiring.run_host(wiring.docker_engine())
        done = certify_run(opened, host, request, reporter)
    card = None if done.card is None else done.card.public_document()
    if as_json:
        print_json(run_document(done.record, done.quota, run_folder=done.folder, card=card))
    else:
        from rich.console import Console

        from orchestrator.cli.views.run_view import run_summary
        from orchestrator.cli.views.score_card import score_card

        console = Console(highlight=False)
        if card is not None:
            console.print(score_card(card, title=f"{team} · {edition}"))
        console.print(run_summary(done.record, done.quota, folder=done.folder))
    _exit_for(done.record)


def _exit_for(record: RunRecord) -> None:
    from manifests.outcomes import Outcome

    if record.outcome is Outcome.PLATFORM_FAULT:
        raise typer.Exit(EXIT_OUR_SIDE)
    if record.outcome is not Outcome.COMPLETED:
        raise typer.Exit(EXIT_NOT_COMPLETED)


@app.command(rich_help_panel="Auditors")
def replay(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")],
    image: Annotated[
        str, typer.Argument(metavar="IMAGE|ARCHIVE.tar", help="The image that the run ran.")
    ],
    workspace: Workspace = CURRENT_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Run a recorded run's image again on the same clips and compare; uses no run, no log."""
    from orchestrator.cli.views.console import print_json
    from orchestrator.cli.views.progress import shown_progress
    from orchestrator.cli.views.replay_view import replay_document, replay_summary
    from orchestrator.runs.replay import replay as replay_run
    from orchestrator.wiring import workspaces as wiring

    opened = wiring.open_workspace(workspace)
    with shown_progress(quiet=as_json) as reporter:
        found = replay_run(opened, wiring.run_host(wiring.docker_engine()), run, image, reporter)
    if as_json:
        print_json(replay_document(found))
    else:
        from rich.console import Console

        Console(highlight=False).print(replay_summary(found))
    if not found.holds:
        raise typer.Exit(EXIT_NOT_COMPLETED)


@runs.command("list")
def runs_list(
    edition: Annotated[str | None, typer.Option(help="Only this edition.")] = None,
    team: Annotated[str | None, typer.Option(help="Only this team.")] = None,
    workspace: Workspace = CURRENT_FOLDER,
    as_json: AsJson = False,
) -> None:
    """List the runs and submissions of the workspace."""
    from orchestrator.cli.views.console import print_json
    from orchestrator.runs.list_runs import list_runs, run_row
    from orchestrator.wiring import workspaces as wiring

    found = list_runs(wiring.open_workspace(workspace), edition=edition, team=team)
    if as_json:
        print_json({"runs": [run_row(run) for run in found]})
        return
    from rich.console import Console

    from orchestrator.cli.views.run_view import runs_table

    Console(highlight=False).print(runs_table(found) if found else "no runs yet")


@runs.command("show")
def runs_show(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")],
    proof: Annotated[
        bool,
        typer.Option("--proof", help="Print a receipt instead: JSON that `piste verify` takes."),
    ] = False,
    workspace: Workspace = CURRENT_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Show one run: its record, as the ledger tells it, and what the team has left."""
    from orchestrator.cli.views.console import print_bytes, print_json
    from orchestrator.evidence.make_receipt import make_receipt
    from orchestrator.runs.list_runs import show_run
    from orchestrator.runs.rules.run_report import run_document
    from orchestrator.wiring import workspaces as wiring

    opened = wiring.open_workspace(workspace)
    if proof:
        print_bytes(make_receipt(opened, run))
        return
    shown = show_run(opened, run)
    if as_json:
        print_json(
            run_document(shown.record, shown.quota, run_folder=shown.folder, card=shown.card)
        )
        return
    from rich.console import Console

    from orchestrator.cli.views.run_view import run_summary
    from orchestrator.cli.views.score_card import score_card

    console = Console(highlight=False)
    if shown.card is not None:
        console.print(score_card(shown.card, title=f"{shown.record.team} · {shown.record.edition}"))
    console.print(run_summary(shown.record, shown.quota, folder=shown.folder))


@runs.command("void")
def runs_void(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")],
    reason: Annotated[str, typer.Option(help="Why it does not count; public for ever.")],
    workspace: Workspace = CURRENT_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Void a run with a public reason: it does not count any longer."""
    from orchestrator.cli.views.console import print_json, say
    from orchestrator.runs.list_runs import void_by_organizer
    from orchestrator.wiring import workspaces as wiring

    record = void_by_organizer(wiring.open_workspace(workspace), run, reason=reason)
    if as_json:
        print_json(record.model_dump(mode="json"))
        return
    say(f"run {record.run_id} of {record.team} in {record.edition} is voided: {reason}")


@runs.command("reap")
def runs_reap(workspace: Workspace = CURRENT_FOLDER, as_json: AsJson = False) -> None:
    """Pick up runs whose process died: finish or void them, and remove what they left."""
    from orchestrator.cli.views.console import print_json, say
    from orchestrator.cli.views.progress import shown_progress
    from orchestrator.runs.recover_runs import recover_runs
    from orchestrator.wiring import workspaces as wiring

    opened = wiring.open_workspace(workspace)
    with shown_progress(quiet=as_json) as reporter:
        settled = recover_runs(opened, wiring.docker_engine(), reporter)
    if as_json:
        print_json({"settled": list(settled)})
        return
    say(f"picked up {len(settled)} runs" if settled else "nothing to pick up")
