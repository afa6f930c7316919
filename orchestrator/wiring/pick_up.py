"""Pick up whatever a dead process left in a workspace: the first thing that every command does."""

from __future__ import annotations

from collections.abc import Callable

from manifests.errors import PisteError
from orchestrator.board.settle_submissions import settle_submissions
from orchestrator.editions.settle_editions import settle_abandoned
from orchestrator.engine.ports import ContainerEngine
from orchestrator.runs.recover_runs import abandoned_runs, recover_runs
from orchestrator.support.reporter import Reporter
from orchestrator.workspace.workspace import Workspace


def pick_up(
    workspace: Workspace, connect: Callable[[], ContainerEngine], reporter: Reporter
) -> None:
    """Settle abandoned editions, submissions and runs; `connect` is called for runs alone.

    What cannot be settled now stays for the next command, with a warning: looking at a workspace
    must be possible without an engine and without every key.
    """
    try:
        for edition in settle_abandoned(workspace.store, workspace.ledger):
            reporter.note(f"edition {edition} was finished after its sealing had been interrupted")
        settle_submissions(workspace)
        if abandoned_runs(workspace):
            recover_runs(workspace, connect(), reporter)
    except PisteError as error:
        reporter.warn(f"something of an interrupted command is left: {error}")
