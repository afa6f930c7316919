"""Hold an image at the engine for as long as it is needed, and leave the engine as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from manifests.images import ImageIdentity
from orchestrator.engine.ports import ContainerEngine
from orchestrator.images.bring_in_image import bring_in
from orchestrator.images.remove_image import remove_unless_used
from orchestrator.images.resolve_image import ResolvedImage
from orchestrator.runs.run_host import RunHost
from orchestrator.support.interruption import termination_ignored
from orchestrator.support.reporter import Reporter, Step


@dataclass(slots=True)
class BorrowedImage:
    """An image at the engine; `removed` tells afterwards whether it was removed again."""

    identity: ImageIdentity
    removed: bool = False


@contextmanager
def borrowed_image(
    resolved: ResolvedImage, *, host: RunHost, reporter: Reporter
) -> Iterator[BorrowedImage]:
    """Bring the image in; remove it afterwards, whatever happens.

    It stays where it was there before, or where another run's container is made from it.

    Raises as `bring_in`.
    """
    engine = host.engine
    before = frozenset(engine.list_image_ids())
    held: BorrowedImage | None = None
    reporter.step(Step.PULL)
    try:
        identity = bring_in(
            resolved, sources=host.sources, free_bytes=host.free_bytes, reporter=reporter
        )
        held = BorrowedImage(identity)
        yield held
    finally:
        with termination_ignored():
            known = () if held is None else (held.identity.engine_image_id,)
            possible = frozenset((*known, *resolved.likely_ids))
            removed = _remove_new(engine, possible - before, reporter)
        if held is not None:
            held.removed = removed


def _remove_new(engine: ContainerEngine, possible: frozenset[str], reporter: Reporter) -> bool:
    """Remove the image under the new ids that it may have got; tell whether it was there and went.

    Its ids and not its layers tell it: another run may hold an image that differs in the config.
    """
    new = sorted(possible.intersection(engine.list_image_ids()))
    reasons = [reason for each in new if (reason := remove_unless_used(engine, each))]
    for reason in reasons:
        reporter.warn(f"the image stays at the engine: {reason}")
    return bool(new) and not reasons
