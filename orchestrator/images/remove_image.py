"""Remove an image by id unless somebody else runs it, and look whether it is gone (notes, 2.4)."""

from __future__ import annotations

from manifests.images import ImageIdentity, ImageRemoval
from orchestrator.engine.ports import ContainerEngine, EngineError


def remove_unless_used(engine: ContainerEngine, image_id: str) -> str:
    """Remove the image by its full id; return why it is still there, or nothing.

    One's own containers have to be removed first. A container that is left is another run's, of
    another workspace or a dry run: an engine made to remove an image would take it away from one
    that is not started yet. An image that was not there is gone, too.

    Raises:
        PlatformFault: when no engine answers.

    """
    using = _containers_of(engine, image_id)
    if using:
        return f"containers made from it remain: {', '.join(using)}"
    try:
        engine.remove_image(image_id)
    except EngineError as error:
        return str(error)
    return ""


def _containers_of(engine: ContainerEngine, image_id: str) -> tuple[str, ...]:
    return tuple(
        name
        for name in engine.list_containers("")
        if (engine.inspect_container(name) or {}).get("Image") == image_id
    )


def remove_image_with_proof(engine: ContainerEngine, identity: ImageIdentity) -> ImageRemoval:
    """Remove the image as above and return what was seen before and after.

    Layers that other images share stay, rightly.

    Raises:
        PlatformFault: when the engine fails.

    """
    before = engine.list_image_ids()
    detail = remove_unless_used(engine, identity.engine_image_id)
    after = engine.list_image_ids()
    detail = detail or _still_there(engine, identity.engine_image_id, after)
    return ImageRemoval(
        gone=not detail, images_before=len(before), images_after=len(after), detail=detail
    )


def _still_there(engine: ContainerEngine, image_id: str, after: tuple[str, ...]) -> str:
    if engine.inspect_image(image_id) is not None:
        return f"the engine still answers for {image_id}"
    if image_id in after:
        return f"the engine still lists {image_id}"
    using = _containers_of(engine, image_id)
    return f"containers made from it remain: {', '.join(using)}" if using else ""
