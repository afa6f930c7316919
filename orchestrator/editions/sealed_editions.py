"""Load a sealed edition and hold it against what the ledger says was sealed."""

from __future__ import annotations

from dataclasses import dataclass

from manifests.digests import sha256_hex
from manifests.editions import Edition, parse_edition
from manifests.errors import ClaimDoesNotHold, RefusedByPolicy
from manifests.statements import EditionSealed
from manifests.sums import parse_sums
from orchestrator.editions.rules.seal_documents import SealDocument, parse_seal
from orchestrator.editions.settle_editions import (
    EDITION_FILE,
    PROFILE_FILE,
    SEAL_FILE,
    SEALED_SUMS_FILE,
    VOCABULARY_FILE,
)
from orchestrator.ledger.ports import Ledger
from orchestrator.workspace.ports import WorkspaceStore


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedEdition:
    """A sealed edition, every public file of it as the ledger's statement has it."""

    folder: str
    """`editions/<edition>` below the workspace."""
    statement: EditionSealed
    edition: Edition
    seal: SealDocument
    profile: bytes
    """The sandbox profile's file."""
    vocabulary: bytes | None
    cipher_sums: dict[str, str]
    """SHA-256 by name, as `sealed/0001.age`, in order."""


def load_sealed_edition(name: str, *, store: WorkspaceStore, ledger: Ledger) -> SealedEdition:
    """Load the edition `name`; its ciphertexts are not read.

    Raises:
        RefusedByPolicy: no such edition is sealed in this workspace.
        ClaimDoesNotHold: a file is not the one that was sealed.

    """
    statement = find_seal_statement(name, ledger)
    folder = f"editions/{name}"

    def read(file: str, sha256: str) -> bytes:
        data = store.read(f"{folder}/{file}")
        found = sha256_hex(data)
        if found != sha256:
            raise ClaimDoesNotHold(
                f"{store.root}/{folder}/{file}: SHA-256 {found[:16]}…, but {sha256[:16]}… was "
                "sealed; restore the file from a backup"
            )
        return data

    seal = parse_seal(read(SEAL_FILE, statement.seal_sha256), source=f"{folder}/{SEAL_FILE}")
    document = read(EDITION_FILE, statement.edition_sha256)
    sums = read(SEALED_SUMS_FILE, statement.sealed_sums_sha256)
    vocabulary = seal.vocabulary_sha256
    return SealedEdition(
        folder=folder,
        statement=statement,
        edition=parse_edition(document, source=f"{folder}/{EDITION_FILE}"),
        seal=seal,
        profile=read(PROFILE_FILE, statement.profile_sha256),
        vocabulary=None if vocabulary is None else read(VOCABULARY_FILE, vocabulary),
        cipher_sums=parse_sums(sums, source=f"{folder}/{SEALED_SUMS_FILE}").by_name(),
    )


def find_seal_statement(name: str, ledger: Ledger) -> EditionSealed:
    """Return the statement that sealed the edition.

    Raises:
        RefusedByPolicy: there is none; the message lists the editions that there are.

    """
    for entry in ledger.entries(kind="edition-sealed", edition=name):
        if isinstance(entry.statement, EditionSealed):
            return entry.statement
    others = sorted(
        entry.statement.edition
        for entry in ledger.entries(kind="edition-sealed")
        if isinstance(entry.statement, EditionSealed)
    )
    known = f"the editions are {', '.join(others[:20])}" if others else "none is sealed yet"
    raise RefusedByPolicy(f"edition {name}: not in this workspace; {known}")
