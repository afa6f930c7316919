"""What an organizer wrote: an edition's file, and a folder of clips in the Épée layout."""

from __future__ import annotations

from typing import Protocol


class ClipFolder(Protocol):
    """Clips as the public corpus ships them; every file is read anew at each call."""

    @property
    def place(self) -> str:
        """The folder, for messages."""

    def clip_ids(self) -> tuple[str, ...]:
        """Return the sorted ids of all clips, each with keypoints and an annotation.

        Raises:
            MalformedDocument: a file without its partner, an unsafe name, or no clip at all.

        """

    def keypoints(self, clip_id: str) -> bytes:
        """Return the clip's `.npy` file."""

    def annotation(self, clip_id: str) -> bytes:
        """Return the clip's annotation."""


class EditionSource(Protocol):
    """An `edition.yaml` and the files that it names, relative to its folder."""

    @property
    def place(self) -> str:
        """The path of `edition.yaml`, for messages."""

    def document(self) -> bytes:
        """Return the bytes of `edition.yaml`."""

    def place_of(self, path: str) -> str:
        """Return where the edition's `path` leads, for messages."""

    def read(self, path: str) -> bytes:
        """Return the bytes of a file that the edition names."""

    def clips(self, path: str) -> ClipFolder:
        """Return the clip folder that the edition names."""
