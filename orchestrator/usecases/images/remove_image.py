"""Remove an entrant's image by id, and look whether it is gone (sandbox notes, 2.4)."""

from __future__ import annotations

from manifests.images import ImageIdentity, ImageRemoval
from orchestrator.ports.engine import ContainerEngine


def _still_there(engine: ContainerEngine, identity: ImageIdentity, after: tuple[str, ...]) -> str:
    image_id = identity.engine_image_id
    if engine.inspect_image(image_id) is not None:
        return f"the engine still answers for {image_id}"
    if image_id in after:
        return f"the engine still lists {image_id}"
    using = [
        name
        for name in engine.list_containers("")
        if (engine.inspect_container(name) or {}).get("Image") == image_id
    ]
    return f"containers made from it remain: {', '.join(using)}" if using else ""


def remove_image_with_proof(engine: ContainerEngine, identity: ImageIdentity) -> ImageRemoval:
    """Remove the image by its full id and return what was seen before and after.

    Containers made from it have to be removed first: the engine would keep the layers for them.
    Layers that other images share stay, rightly. An image that was not there is gone, too.

    Raises:
        PlatformFault: when the engine fails.

    """
    before = engine.list_image_ids()
    engine.remove_image(identity.engine_image_id)
    after = engine.list_image_ids()
    detail = _still_there(engine, identity, after)
    return ImageRemoval(
        gone=not detail, images_before=len(before), images_after=len(after), detail=detail
    )
