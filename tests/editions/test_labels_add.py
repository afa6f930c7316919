"""New label versions: by original or opaque names, committed, and never changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from manifests.errors import MalformedDocument, RefusedByPolicy
from manifests.labels import RecognitionLabel
from manifests.statements import LabelsAdded, LabelsCommitment
from orchestrator.editions.epee.epee_folder import EditionFile
from orchestrator.editions.labels_add import LabelTools, add_labels
from orchestrator.editions.open_labels import (
    find_commitment,
    label_commitments,
    open_labels,
    open_names,
)
from orchestrator.editions.seal_edition import SealingTools, seal_edition
from orchestrator.editions.sealed_editions import load_sealed_edition
from orchestrator.keys.age.age_files import AgeKeyring
from orchestrator.keys.sealing_port import Purpose


@pytest.fixture
def tools(sealing: SealingTools, sample: EditionFile, keyring: AgeKeyring) -> LabelTools:
    seal_edition(sample, sealing)
    return LabelTools(
        store=sealing.store,
        ledger=sealing.ledger,
        sealer=sealing.sealer,
        unsealer=keyring.unsealer(Purpose.LABELS),
        clock=sealing.clock,
    )


@pytest.fixture
def lines(sample_root: Path) -> list[dict[str, object]]:
    text = (sample_root / "labels-v1.jsonl").read_text()
    found = [json.loads(line) for line in text.splitlines()]
    found[0]["glosses"][0] = "CORRECTED"
    return found


def encode(lines: list[dict[str, object]]) -> bytes:
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def add(tools: LabelTools, data: bytes, version: str = "labels-v2") -> LabelsCommitment:
    return add_labels("sample-2026", version, data, source="v2.jsonl", note="second", tools=tools)


def glosses_by_original_name(tools: LabelTools, version: str) -> dict[str, tuple[str, ...]]:
    sealed = load_sealed_edition("sample-2026", store=tools.store, ledger=tools.ledger)
    names = open_names(sealed, store=tools.store, unsealer=tools.unsealer)
    commitment = find_commitment("sample-2026", version, tools.ledger)
    labels = open_labels(sealed, commitment, store=tools.store, unsealer=tools.unsealer)
    by_clip = labels.by_clip()
    found = {}
    for original, opaque in names.items():
        label = by_clip[opaque]
        assert isinstance(label, RecognitionLabel)
        found[original] = label.glosses
    return found


def test_a_second_version_is_renamed_and_stands_beside_the_first(
    tools: LabelTools, lines: list[dict[str, object]]
) -> None:
    commitment = add(tools, encode(lines))
    assert [one.version for one in label_commitments("sample-2026", tools.ledger)] == [
        "labels-v1",
        "labels-v2",
    ]
    (entry,) = tools.ledger.entries(kind="labels-added")
    assert isinstance(entry.statement, LabelsAdded)
    assert entry.statement.labels == commitment
    second = glosses_by_original_name(tools, "labels-v2")
    assert {name: list(glosses) for name, glosses in second.items()} == {
        line["clip_id"]: line["glosses"] for line in lines
    }
    assert glosses_by_original_name(tools, "labels-v1") != second


def test_labels_under_opaque_names_are_taken_as_they_are(
    tools: LabelTools, lines: list[dict[str, object]]
) -> None:
    sealed = load_sealed_edition("sample-2026", store=tools.store, ledger=tools.ledger)
    names = open_names(sealed, store=tools.store, unsealer=tools.unsealer)
    add(tools, encode([line | {"clip_id": names[str(line["clip_id"])]} for line in lines]))
    found = glosses_by_original_name(tools, "labels-v2")
    assert list(found["sample_0001"]) == lines[0]["glosses"]


def test_a_version_is_never_replaced(tools: LabelTools, lines: list[dict[str, object]]) -> None:
    add(tools, encode(lines))
    before = tools.store.read("editions/sample-2026/labels/labels-v2.age")
    for version in ("labels-v1", "labels-v2"):
        with pytest.raises(RefusedByPolicy, match=f"{version} exist already"):
            add(tools, encode(lines), version)
    assert tools.store.read("editions/sample-2026/labels/labels-v2.age") == before


def test_a_file_that_a_killed_command_left_is_written_anew(
    tools: LabelTools, lines: list[dict[str, object]]
) -> None:
    tools.store.create("editions/sample-2026/labels/labels-v2.age", b"half done")
    add(tools, encode(lines))
    assert glosses_by_original_name(tools, "labels-v2")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"clip_id": "stranger"}, "no such clip"),
        ({"glosses": ["ONE"] * 12}, "glosses for"),
        ({"glosses": []}, "v2.jsonl:1"),
        ({"slice": "studio"}, "unknown"),
    ],
)
def test_labels_that_do_not_fit_are_refused_and_nothing_is_written(
    tools: LabelTools, lines: list[dict[str, object]], change: dict[str, object], message: str
) -> None:
    with pytest.raises(MalformedDocument, match=message):
        add(tools, encode([lines[0] | change, *lines[1:]]))
    assert not tools.store.exists("editions/sample-2026/labels/labels-v2.age")
    assert list(tools.ledger.entries(kind="labels-added")) == []


def test_a_version_has_a_safe_name(tools: LabelTools, lines: list[dict[str, object]]) -> None:
    with pytest.raises(MalformedDocument, match="not a label version"):
        add(tools, encode(lines), "../v2")
