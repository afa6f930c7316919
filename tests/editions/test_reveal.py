"""Revealing: after the edition closes, checkable with sha256sum alone, once."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from manifests.digests import sha256_hex
from manifests.errors import ClaimDoesNotHold, RefusedByPolicy
from manifests.labels import parse_salted_labels
from manifests.statements import EditionRevealed
from orchestrator.editions.epee.epee_folder import EditionFile
from orchestrator.editions.reveal import RevealTools, reveal_edition
from orchestrator.editions.seal_edition import SealingTools, seal_edition
from orchestrator.editions.sealed_editions import load_sealed_edition
from orchestrator.keys.age.age_files import AgeKeyring

EDITION = "editions/sample-2026"


class AfterTheEnd:
    def now(self) -> datetime:
        return datetime(2026, 7, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0


@pytest.fixture
def tools(sealing: SealingTools, sample: EditionFile, keyring: AgeKeyring) -> RevealTools:
    seal_edition(sample, sealing)
    return RevealTools(
        store=sealing.store, ledger=sealing.ledger, keyring=keyring, clock=AfterTheEnd()
    )


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="sha256sum is missing")
def test_what_is_revealed_matches_the_published_digests_by_sha256sum(tools: RevealTools) -> None:
    statement = reveal_edition("sample-2026", tools)
    sealed = load_sealed_edition("sample-2026", store=tools.store, ledger=tools.ledger)
    assert statement.files == {
        "revealed/clips.sha256": sealed.statement.clip_set_sha256,
        "revealed/labels-v1.jsonl": sealed.statement.labels.sha256,
    }
    listing = "".join(f"{digest}  {name}\n" for name, digest in statement.files.items())
    command = ["sha256sum", "--strict", "-c"]
    folder = tools.store.root / EDITION
    subprocess.run(command, input=listing, cwd=folder, check=True, capture_output=True, text=True)


def test_revealed_labels_are_read_by_the_scorers_parser(tools: RevealTools) -> None:
    reveal_edition("sample-2026", tools)
    data = tools.store.read(f"{EDITION}/revealed/labels-v1.jsonl")
    labels = parse_salted_labels(data, track="recognition", source="labels-v1.jsonl")
    assert len(labels.entries) == 8
    assert labels.salt is not None


def test_an_open_edition_is_not_revealed(tools: RevealTools, sealing: SealingTools) -> None:
    with pytest.raises(RefusedByPolicy, match="open until 2026-07-01T00:00:00Z"):
        reveal_edition("sample-2026", replace(tools, clock=sealing.clock))
    assert tools.store.list_names(f"{EDITION}/revealed") == ()


def test_an_edition_is_revealed_once(tools: RevealTools) -> None:
    reveal_edition("sample-2026", tools)
    with pytest.raises(RefusedByPolicy, match="revealed already"):
        reveal_edition("sample-2026", tools)
    kinds = [type(entry.statement) for entry in tools.ledger.entries(kind="edition-revealed")]
    assert kinds == [EditionRevealed]


def test_a_reveal_that_was_killed_is_done_again(tools: RevealTools) -> None:
    tools.store.create(f"{EDITION}/revealed/clips.sha256", b"half")
    statement = reveal_edition("sample-2026", tools)
    data = tools.store.read(f"{EDITION}/revealed/clips.sha256")
    assert sha256_hex(data) == statement.files["revealed/clips.sha256"]


def test_labels_that_are_not_the_committed_ones_are_not_published(
    tools: RevealTools, sealing: SealingTools
) -> None:
    other = sealing.sealer.seal(b"other labels", sealing.recipients.labels)
    tools.store.replace(f"{EDITION}/labels/labels-v1.age", other)
    with pytest.raises(ClaimDoesNotHold, match="was committed"):
        reveal_edition("sample-2026", tools)
    assert tools.store.list_names(f"{EDITION}/revealed") == ()
