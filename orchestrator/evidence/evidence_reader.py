"""Read an evidence tree into what the checks take: every file once, digested as it is read."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator

from manifests.errors import MalformedDocument
from orchestrator.evidence.ports import EvidenceTree
from orchestrator.evidence.rules.catalogue import Check
from orchestrator.evidence.rules.findings import Findings
from orchestrator.evidence.rules.folders import Folder
from orchestrator.ledger.rules.entries import StoredLeaf
from orchestrator.ledger.rules.leaves import MAX_LEAF_BYTES

MAX_PARSED_BYTES = 64 * 1024 * 1024
"""No file that is parsed whole is larger; the rest is digested in chunks."""
_NEVER_PARSED = (".age", ".npy")


class EvidenceReader:
    """Reads below `base` (`data/` in a bag) and remembers every digest."""

    def __init__(self, tree: EvidenceTree, findings: Findings, *, base: str = "") -> None:
        self._tree = tree
        self._findings = findings
        self._base = base
        self._names = tuple(n[len(base) :] for n in tree.names if n.startswith(base))
        self.digests: dict[str, str] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The sorted names below the base."""
        return self._names

    def names_below(self, prefix: str) -> tuple[str, ...]:
        """Return the names that begin with `prefix`."""
        begin = bisect_left(self._names, prefix)
        end = begin
        while end < len(self._names) and self._names[end].startswith(prefix):
            end += 1
        return self._names[begin:end]

    def folders_below(self, prefix: str) -> tuple[str, ...]:
        """Return the sorted names of the folders directly below `prefix`."""
        rests = (name[len(prefix) :] for name in self.names_below(prefix))
        return tuple(dict.fromkeys(rest.split("/")[0] for rest in rests if "/" in rest))

    def folder(self, prefix: str, *, place: str) -> Folder:
        """Read every file below `prefix`, which ends in a slash or is empty."""
        return self.select(self.names_below(prefix), prefix=prefix, place=place)

    def select(self, names: Iterable[str], *, prefix: str, place: str) -> Folder:
        """Read some files; one that cannot be read is a fault of check 1 and left out."""
        digests: dict[str, str] = {}
        contents: dict[str, bytes] = {}
        for name in names:
            with self._findings.judging(Check.TREE):
                digest, data = self._read(name)
                self.digests[name] = digests[name[len(prefix) :]] = digest
                if data is not None:
                    contents[name[len(prefix) :]] = data
        return Folder(place=place, digests=digests, contents=contents)

    def _read(self, name: str) -> tuple[str, bytes | None]:
        keep = not name.endswith(_NEVER_PARSED)
        keep = keep and self._tree.size_bytes(self._base + name) <= MAX_PARSED_BYTES
        hashed, chunks, kept = hashlib.sha256(), [], 0
        for chunk in self._tree.stream(self._base + name):
            hashed.update(chunk)
            kept += len(chunk)
            if keep and kept <= MAX_PARSED_BYTES:  # a file may grow after it was listed
                chunks.append(chunk)
        return hashed.hexdigest(), b"".join(chunks) if keep and kept <= MAX_PARSED_BYTES else None

    def leaves(
        self, name: str, *, see: Callable[[bytes], None] | None = None
    ) -> Iterator[StoredLeaf]:
        """Yield the leaves of an exported log, one envelope a line; `see` receives each.

        What is no line of a log ends the reading as a fault of check 5.
        """
        if name not in self._names:
            self._findings.fault(Check.STATEMENTS, f"{name}: is missing")
            return
        hashed = hashlib.sha256()
        with self._findings.judging(Check.STATEMENTS):
            for sequence, line in enumerate(self._lines(name, hashed.update)):
                if see is not None:
                    see(line)
                yield StoredLeaf(
                    sequence=sequence, kind="", edition=None, team=None, run_id=None, envelope=line
                )
            self.digests[name] = hashed.hexdigest()

    def _lines(self, name: str, update: Callable[[bytes], None]) -> Iterator[bytes]:
        rest = b""
        for chunk in self._tree.stream(self._base + name):
            update(chunk)
            *lines, rest = (rest + chunk).split(b"\n")
            yield from lines
            if len(rest) > MAX_LEAF_BYTES:
                raise MalformedDocument(f"{name}: a line of more than {MAX_LEAF_BYTES} bytes")
        if rest:
            raise MalformedDocument(f"{name}: the last line has no end; the file was cut")
