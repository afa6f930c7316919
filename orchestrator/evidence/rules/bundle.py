"""The layout of an exported bundle, and the files in it that follow from all others.

`bundle.json`, the keys, the recipe and the sums are functions of log, edition and runs. They need
no signature: whoever checks a bundle makes them anew and compares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from manifests.encoding import parse_json_object, readable_json
from manifests.errors import MalformedDocument
from manifests.names import EditionName, RunId
from manifests.statements import PublicKey
from orchestrator.evidence.rules.checking_recipe import CHECK_SCRIPT, CHECK_TEXT
from orchestrator.ledger.rules.keyset import Keyset

BUNDLE_FILE = "bundle.json"
RECIPE_TEXT = "CHECK.md"
RECIPE_SCRIPT = "check.sh"
LOG_FOLDER = "log"
LOG_ENTRIES = f"{LOG_FOLDER}/entries.jsonl"
LOG_CHECKPOINT = f"{LOG_FOLDER}/checkpoint"
KEYS_FOLDER = "keys"
EDITIONS_FOLDER = "editions"
RUNS_FOLDER = "runs"


class BundleDocument(BaseModel):
    """bundle.json: what the bundle holds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["piste-bundle/1"] = "piste-bundle/1"
    of: Literal["run", "edition"]
    edition: EditionName
    runs: tuple[RunId, ...]
    """Sorted. A bundle of an edition holds every run of it that left evidence."""
    origin: str
    statements: int
    """The log's size when this was exported."""


def bundle_bytes(document: BundleDocument) -> bytes:
    """Return bundle.json's bytes."""
    return readable_json(document.model_dump(mode="json"))


def parse_bundle(data: bytes, *, source: str) -> BundleDocument:
    """Read bundle.json strictly, in the one form in which it is written.

    Raises:
        MalformedDocument: when it is not of this format.

    """
    parse_json_object(data, source=source)  # duplicate keys and NaN are refused here
    try:
        document = BundleDocument.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise MalformedDocument(f"{source}: field {field}: {first['msg']}") from error
    if bundle_bytes(document) != data:
        raise MalformedDocument(f"{source}: not in the form in which it is written")
    return document


def key_file(key: PublicKey) -> str:
    """Return the name of a published key's PEM file."""
    return f"{KEYS_FOLDER}/{key.role}-{key.key_id[:16]}.pem"


def derived_files(document: BundleDocument, keyset: Keyset) -> dict[str, bytes]:
    """Return every file of a bundle that follows from the others, the sums left out."""
    files = {
        BUNDLE_FILE: bundle_bytes(document),
        RECIPE_TEXT: CHECK_TEXT.encode("utf-8"),
        RECIPE_SCRIPT: CHECK_SCRIPT.encode("utf-8"),
    }
    return files | {key_file(key): key.pem.encode("ascii") for key in keyset.published()}


def is_derived(name: str) -> bool:
    """Tell whether a file of a bundle follows from the others (the sums are judged apart)."""
    return name in {BUNDLE_FILE, RECIPE_TEXT, RECIPE_SCRIPT} or name.startswith(f"{KEYS_FOLDER}/")


def top_folder(document: BundleDocument) -> str:
    """Return the one folder in which the tar holds everything."""
    return f"piste-run-{document.runs[0]}" if document.of == "run" else f"piste-{document.edition}"


def entries_file(envelopes: Iterable[bytes]) -> bytes:
    """Return log/entries.jsonl: one envelope a line, in order; canonical JSON has no newline."""
    return b"".join(envelope + b"\n" for envelope in envelopes)


def bag_files(digests: Mapping[str, str], *, payload_bytes: int) -> dict[str, bytes]:
    """Return the tag files of a BagIt bag (RFC 8493) over a payload below data/.

    No date is among them: the same payload gives the same bag.
    """
    manifest = "".join(f"{digests[name]}  data/{name}\n" for name in sorted(digests))
    return {
        "bag-info.txt": f"Payload-Oxum: {payload_bytes}.{len(digests)}\n".encode("ascii"),
        "bagit.txt": b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n",
        "manifest-sha256.txt": manifest.encode("ascii"),
    }
