"""Bring a resolved image into the engine, and make sure that the engine holds exactly it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, assert_never

from manifests.digests import oci_digest
from manifests.errors import PlatformFault, RefusedByPolicy
from manifests.images import ImageIdentity
from orchestrator.engine.ports import ContainerEngine
from orchestrator.images.remove_image import remove_unless_used
from orchestrator.images.resolve_image import (
    ArchivePlan,
    EnginePlan,
    ImageSources,
    RegistryPlan,
    ResolvedImage,
)
from orchestrator.images.saved_images import saved_config
from orchestrator.support.reporter import Reporter

FreeBytes = Callable[[str], int | None]
"""Free bytes of the file system under a path, or None where this process cannot see it."""

_SPARE_BYTES = 256 << 20
_EXPANSION = 4
"""A compressed layer lies on disk compressed and unpacked; images grow two- to threefold."""


class NoRoomForImage(PlatformFault):
    """The engine's disk has too little space for the image; nothing was brought in."""


def required_bytes(resolved: ResolvedImage) -> int:
    """Return an estimate of the space under the engine's data root while the image comes in."""
    match resolved.plan:
        case RegistryPlan(compressed_bytes=compressed):
            return _SPARE_BYTES + _EXPANSION * compressed
        case ArchivePlan(image=image):
            return _SPARE_BYTES + 2 * image.uncompressed_bytes
        case EnginePlan():
            return 0
        case _:
            assert_never(resolved.plan)


def _require_space(resolved: ResolvedImage, engine: ContainerEngine, free_bytes: FreeBytes) -> None:
    data_root = engine.describe().data_root
    free, needed = free_bytes(data_root), required_bytes(resolved)
    if free is not None and free < needed:
        raise NoRoomForImage(
            f"{resolved.reference}: needs about {needed} bytes under {data_root}, {free} are free; "
            "make room and try again, nothing was spent"
        )


def bring_in(
    resolved: ResolvedImage, *, sources: ImageSources, free_bytes: FreeBytes, reporter: Reporter
) -> ImageIdentity:
    """Pull or load the image, find it by full id and compare it with what was resolved.

    An image that fails the comparison is removed again, unless it was there before.

    Raises:
        PlatformFault: for too little space, a failing engine, or an engine that holds another image
            than the one that was resolved.
        RefusedByPolicy: for an image that is larger in the engine than the bound.

    """
    engine = sources.engine
    _require_space(resolved, engine, free_bytes)
    before = frozenset(engine.list_image_ids())
    named = _carry_out(resolved, sources, reporter)
    found = _find(resolved, engine, named, before)
    if found is None:
        raise PlatformFault(
            f"{resolved.reference}: the engine took it, but holds no image with config "
            f"{resolved.config_digest}"
        )
    image_id, inspection = found
    size = int(inspection.get("Size") or 0)
    if size > sources.limit_bytes:
        if image_id not in before:
            remove_unless_used(engine, image_id)
        raise RefusedByPolicy(
            f"{resolved.reference}: {size} bytes unpacked; at most {sources.limit_bytes} are taken"
        )
    return resolved.identity(
        engine_image_id=image_id, size_bytes=size, store=engine.describe().store
    )


def _carry_out(
    resolved: ResolvedImage, sources: ImageSources, reporter: Reporter
) -> tuple[str, ...]:
    """Pull or load; return the ids that the engine or the plan names."""
    match resolved.plan:
        case RegistryPlan(reference=reference, manifest_digest=digest):
            sources.engine.pull(reference.name, digest, resolved.platform, reporter)
            return ()
        case ArchivePlan():
            return _load(resolved.plan, resolved.archive_sha256, sources, reporter)
        case EnginePlan(image_id=image_id):
            return (image_id,)
        case _:
            assert_never(resolved.plan)


def _load(
    plan: ArchivePlan, sha256: str | None, sources: ImageSources, reporter: Reporter
) -> tuple[str, ...]:
    """Load the archive written anew; what changed since it was read is refused by the engine.

    The config's bytes come from the first reading, and the engine compares every layer with the
    diff_ids in it.
    """
    with sources.open_archive(plan.path) as source:
        if source.sha256_hex() != sha256:
            raise PlatformFault(
                f"{plan.path}: changed while it was read; leave it alone, try again"
            )
        size_bytes = plan.image.docker_archive_bytes(source)
        return sources.engine.load_archive(plan.image.docker_archive(source), size_bytes, reporter)


def _find(
    resolved: ResolvedImage,
    engine: ContainerEngine,
    named: tuple[str, ...],
    before: frozenset[str],
) -> tuple[str, Mapping[str, Any]] | None:
    """Find the image by full id, the likely ids first.

    A classic store names it by its config digest. A containerd store names it by a manifest or an
    index: there the layers must agree, and the config is read back from the engine.
    """
    new = [each for each in engine.list_image_ids() if each not in before]
    likely = [*named, *resolved.likely_ids, *new]
    for image_id in dict.fromkeys([*likely, *sorted(before)]):
        inspection = engine.inspect_image(image_id)
        if inspection is not None and _is_it(resolved, engine, inspection):
            return str(inspection["Id"]), inspection
    return None


def _is_it(resolved: ResolvedImage, engine: ContainerEngine, inspection: Mapping[str, Any]) -> bool:
    layers = tuple((inspection.get("RootFS") or {}).get("Layers") or ())
    if layers != resolved.config.diff_ids:
        return False
    image_id = str(inspection["Id"])
    if image_id == resolved.config_digest:
        return True
    data = saved_config(engine.save_image(image_id), source=image_id)
    return oci_digest(data) == resolved.config_digest
