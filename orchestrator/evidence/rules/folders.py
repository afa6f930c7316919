"""A folder as the checks see it: digests of all files, and the bytes of those that are parsed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from manifests.errors import MalformedDocument


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """Files by name below the folder; `contents` are the bytes that gave the digest."""

    place: str
    digests: Mapping[str, str]
    contents: Mapping[str, bytes]

    def read(self, name: str) -> bytes:
        """Return a parsed file's bytes.

        Raises:
            MalformedDocument: it is not there, or too large to be read.

        """
        data = self.contents.get(name)
        if data is None:
            fact = "is too large to be read" if name in self.digests else "is missing"
            raise MalformedDocument(f"{self.place}/{name}: {fact}")
        return data

    def below(self, prefix: str) -> Folder:
        """Return the files below `prefix`/ as a folder of their own."""
        start = f"{prefix}/"
        return Folder(
            place=f"{self.place}/{prefix}",
            digests={n[len(start) :]: d for n, d in self.digests.items() if n.startswith(start)},
            contents={n[len(start) :]: d for n, d in self.contents.items() if n.startswith(start)},
        )

    def without(self, prefix: str) -> Folder:
        """Return the folder without the files below `prefix`/."""
        start = f"{prefix}/"
        return Folder(
            place=self.place,
            digests={n: d for n, d in self.digests.items() if not n.startswith(start)},
            contents={n: d for n, d in self.contents.items() if not n.startswith(start)},
        )

    def folders_below(self, prefix: str) -> tuple[str, ...]:
        """Return the sorted names of the folders directly in `prefix`/."""
        start = f"{prefix}/"
        rests = [name[len(start) :] for name in self.digests if name.startswith(start)]
        return tuple(sorted({rest.split("/")[0] for rest in rests if "/" in rest}))
