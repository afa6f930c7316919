"""The simulated engine's images, and how it is lost."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from orchestrator.engine.ports import EngineError, EngineUnavailable, PullFailed
from orchestrator.support.reporter import Reporter, Step
from tests.support import simulated_archives as archives


def refusal(message: str, status: int) -> EngineError:
    """Return the error of an engine that refuses."""
    return EngineError(
        f"the engine could not: {message}; see `piste doctor`",
        engine_message=message,
        status=status,
    )


class SimulatedImages:
    """Keeps images in memory; every call of the port passes `_called`."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self._lose_at: str | None = None
        self._lost = False
        self._registry: dict[tuple[str, str], bytes] = {}
        self._images: dict[str, archives.SimulatedImage] = {}

    def publish(self, repository: str, manifest_digest: str, archive: bytes) -> None:
        """Put a docker-archive where `pull` finds it."""
        self._registry[repository, manifest_digest] = archive

    def lose_at(self, method: str) -> None:
        """From the next call of `method` on, no call is answered."""
        self._lose_at = method

    def _called(self, method: str) -> None:
        self.calls.append(method)
        self._lost = self._lost or method == self._lose_at
        if self._lost:
            raise EngineUnavailable("the simulated engine was lost; restart it")

    def pull(
        self, repository: str, manifest_digest: str, platform: str, reporter: Reporter
    ) -> None:
        """Load what was published."""
        del platform
        self._called("pull")
        archive = self._registry.get((repository, manifest_digest))
        if archive is None:
            raise PullFailed("manifest unknown; check the digest", engine_message="unknown")
        reporter.progress(Step.PULL, len(archive), len(archive), "bytes")
        self._keep(archive)

    def _keep(self, archive: bytes) -> str:
        image = archives.read_image(archive)
        self._images[image.image_id] = image
        return image.image_id

    def load_archive(
        self, archive: Iterable[bytes], size_bytes: int, reporter: Reporter
    ) -> tuple[str, ...]:
        """Load a docker-archive of one image."""
        self._called("load_archive")
        reporter.progress(Step.PULL, size_bytes, size_bytes, "bytes")
        return (self._keep(b"".join(archive)),)

    def inspect_image(self, image_id: str) -> Mapping[str, Any] | None:
        """Return the inspection."""
        self._called("inspect_image")
        image = self._images.get(image_id)
        return None if image is None else copy.deepcopy(dict(image.inspection))

    def list_image_ids(self) -> tuple[str, ...]:
        """Return the ids."""
        self._called("list_image_ids")
        return tuple(sorted(self._images))

    def save_image(self, image_id: str) -> Iterator[bytes]:
        """Return the archive that was loaded."""
        self._called("save_image")
        if image_id not in self._images:
            raise refusal("no such image", 404)
        return iter((self._images[image_id].archive,))

    def remove_image(self, image_id: str) -> None:
        """Forget the image."""
        self._called("remove_image")
        self._images.pop(image_id, None)
