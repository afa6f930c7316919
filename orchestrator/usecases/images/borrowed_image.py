"""Hold an image at the engine for as long as it is needed, and leave the engine as it was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from manifests.images import ImageIdentity
from orchestrator.ports.engine import ContainerEngine
from orchestrator.ports.reporter import Reporter, Step
from orchestrator.usecases.images.bring_in_image import bring_in
from orchestrator.usecases.images.resolve_image import ResolvedImage
from orchestrator.usecases.sandbox.interruption import termination_ignored
from orchestrator.usecases.sandbox.run_host import RunHost


@dataclass(slots=True)
class BorrowedImage:
    """An image at the engine; `removed` tells afterwards whether it was removed again."""

    identity: ImageIdentity
    removed: bool = False


@contextmanager
def borrowed_image(
    resolved: ResolvedImage, *, host: RunHost, reporter: Reporter
) -> Iterator[BorrowedImage]:
    """Bring the image in; remove it afterwards, whatever happens, unless it was there before.

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
            removed = _remove_new(engine, resolved, before)
        if held is not None:
            held.removed = removed


def _remove_new(engine: ContainerEngine, resolved: ResolvedImage, before: frozenset[str]) -> bool:
    """Remove images with the same layers that were not there before; others are left alone."""
    new = [
        image_id
        for image_id in engine.list_image_ids()
        if image_id not in before
        and _layers(engine.inspect_image(image_id)) == resolved.config.diff_ids
    ]
    for image_id in new:
        engine.remove_image(image_id)
    return bool(new)


def _layers(inspection: Mapping[str, Any] | None) -> tuple[str, ...]:
    return tuple(((inspection or {}).get("RootFS") or {}).get("Layers") or ())
