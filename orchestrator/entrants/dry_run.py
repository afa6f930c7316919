"""`piste dry-run`: what a certified run would record, without workspace, keys or ledger.

The executor is the certified run's. What differs is what an entrant may see: the log, the peaks
and a diagnosis.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass

from manifests.errors import PisteError, RefusedByPolicy
from manifests.images import Transport
from manifests.oci import WrongPlatform
from orchestrator.entrants.dry_run_diagnosis import look_closer, observation_of
from orchestrator.entrants.dry_run_input import DryRunInput
from orchestrator.entrants.dry_run_report import DryRunRefusal, DryRunReport
from orchestrator.entrants.dry_run_watch import DryRunDisplay, Watcher
from orchestrator.entrants.ports import WindowOpener
from orchestrator.entrants.rules.findings import Cause, Certainty, Finding
from orchestrator.entrants.rules.observations import Observation
from orchestrator.entrants.rules.ranking import diagnose
from orchestrator.images.borrowed_image import borrowed_image
from orchestrator.images.bring_in_image import NoRoomForImage
from orchestrator.runs.execute_run import RunHooks, execute_run
from orchestrator.runs.prepare_run import RunRequest, prepare_run
from orchestrator.runs.run_host import RunHost
from orchestrator.support.clock import Clock
from orchestrator.support.interruption import termination_as_error
from orchestrator.support.reporter import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunTools:
    """What a dry run works with."""

    host: RunHost
    clock: Clock
    windows: WindowOpener
    display: DryRunDisplay


def dry_run(
    tools: DryRunTools, exam: DryRunInput, request: RunRequest, *, second_pass: bool = True
) -> DryRunReport | DryRunRefusal:
    """Run an image on open clips as a certified run would, and say what that would record.

    Removes containers and volumes, and the image unless it was there before. After a failure the
    `second_pass` looks, with a writable root, where the program writes.

    Raises:
        MalformedDocument: for an image that is not well formed.
        PlatformFault: our side fails before the container starts.
        Interrupted: on a signal, after everything was removed.

    """
    with termination_as_error():
        try:
            return _run(tools, exam, request, second_pass=second_pass)
        except (RefusedByPolicy, NoRoomForImage) as error:
            return DryRunRefusal(error=error, findings=tuple(_refusal_findings(error)))


def _refusal_findings(error: PisteError) -> Iterator[Finding]:
    causes = {
        WrongPlatform: (
            Cause.WRONG_PLATFORM,
            "build it for the engine's platform: docker build --platform linux/amd64 …",
        ),
        NoRoomForImage: (
            Cause.IMAGE_TOO_LARGE,
            "make room here, or make it smaller: no build tools, no caches, one framework",
        ),
    }
    for kind, (cause, remedy) in causes.items():
        if isinstance(error, kind):
            yield Finding(cause=cause, certainty=Certainty.PROVEN, fact=str(error), remedy=remedy)


def _run(
    tools: DryRunTools, exam: DryRunInput, request: RunRequest, *, second_pass: bool
) -> DryRunReport:
    host, display = tools.host, tools.display
    prepared = prepare_run(request, host=host, reporter=display, run_id=secrets.token_hex(8))
    image = prepared.image
    if image.transport is Transport.REGISTRY and image.reference != request.image:
        display.note(f"{request.image} is {image.reference}")
    watcher = Watcher(host.engine, tools.windows, display)
    with borrowed_image(host.engine, image, display) as held:
        executed = execute_run(
            prepared,
            host=host,
            clock=tools.clock,
            reporter=display,
            hooks=RunHooks(
                brought_in=lambda images: held.came_as(images.entrant), observer=watcher
            ),
        )
        seen = look_closer(
            observation_of(prepared, executed, exam, watcher.watched),
            prepared,
            executed.images.entrant,
            clips=exam.clips,
            engine=host.engine,
            reporter=display,
            second_pass=second_pass,
        )
    card, unscored = None, _unscored(seen, exam)
    if unscored is None:
        display.step(Step.SCORE)
        card = exam.score(executed.verdict)
    return DryRunReport(
        exam=exam,
        prepared=prepared,
        executed=executed,
        watched=watcher.watched,
        seen=seen,
        findings=diagnose(seen),
        card=card,
        unscored=unscored,
        image_removed=held.removed,
    )


def _unscored(seen: Observation, exam: DryRunInput) -> str | None:
    if not seen.completed:
        return f"a run that ends as {seen.outcome.value} is not scored"
    return "there are no labels" if exam.scoring is None else None
