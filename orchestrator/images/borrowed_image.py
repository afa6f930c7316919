"""Hold an image at the engine for as long as it is needed, and leave the engine as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from manifests.images import ImageIdentity
from orchestrator.engine.ports import ContainerEngine
from orchestrator.images.remove_image import remove_unless_used
from orchestrator.images.resolve_image import ResolvedImage
from orchestrator.support.interruption import termination_ignored
from orchestrator.support.reporter import Reporter


@dataclass(slots=True)
class BorrowedImage:
    """An image that may come to the engine; `removed` tells afterwards whether it went again."""

    engine_image_id: str | None = None
    """The id that the engine gave it, once it is there: perhaps none of the likely ones."""
    removed: bool = False

    def came_as(self, identity: ImageIdentity) -> None:
        """Note what the engine made of it."""
        self.engine_image_id = identity.engine_image_id


@contextmanager
def borrowed_image(
    engine: ContainerEngine, resolved: ResolvedImage, reporter: Reporter
) -> Iterator[BorrowedImage]:
    """Remove the image at the end, whatever happens; the block brings it in.

    It stays where it was there before, or where another run's container is made from it.
    """
    before = frozenset(engine.list_image_ids())
    held = BorrowedImage()
    try:
        yield held
    finally:
        with termination_ignored():
            known = () if held.engine_image_id is None else (held.engine_image_id,)
            possible = frozenset((*known, *resolved.likely_ids))
            held.removed = _remove_new(engine, possible - before, reporter)


def _remove_new(engine: ContainerEngine, possible: frozenset[str], reporter: Reporter) -> bool:
    """Remove the image under the new ids that it may have got; tell whether it was there and went.

    Its ids and not its layers tell it: another run may hold an image that differs in the config.
    """
    new = sorted(possible.intersection(engine.list_image_ids()))
    reasons = [reason for each in new if (reason := remove_unless_used(engine, each))]
    for reason in reasons:
        reporter.warn(f"the image stays at the engine: {reason}")
    return bool(new) and not reasons
