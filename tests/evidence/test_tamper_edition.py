"""Single changes to the edition, and what was revealed of it: each found, and by the right check."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.evidence.rules.catalogue import Check
from tests.support.bundle_edits import (
    Files,
    flipped,
    pack,
    rederived,
    resummed,
    unpack,
)
from tests.support.bundle_story import Story, doubled_key, foreign_seal, shared, swapped
from tests.support.synthetic_evidence import (
    EDITION,
    failed,
    shared_revealed_bundle,
    verify,
)


@pytest.fixture(scope="module")
def story() -> Story:
    return shared()


Tamper = Callable[[Story], Files]

TAMPERS: dict[str, tuple[Check, Tamper]] = {
    # the edition
    "edition.yaml edited": (
        Check.SEAL,
        lambda s: s.with_file(
            f"{s.edition}/edition.yaml",
            s.files[f"{s.edition}/edition.yaml"].replace(b"Sample", b"Simple"),
        ),
    ),
    "the profile edited": (
        Check.SEAL,
        lambda s: s.with_file(
            f"{s.edition}/profile.yaml", s.files[f"{s.edition}/profile.yaml"] + b" "
        ),
    ),
    "the vocabulary edited": (
        Check.SEAL,
        lambda s: s.with_file(
            f"{s.edition}/vocabulary.txt", s.files[f"{s.edition}/vocabulary.txt"] + b"MORE\n"
        ),
    ),
    "a ciphertext's line dropped": (
        Check.SEAL,
        lambda s: s.with_file(
            f"{s.edition}/sealed.sha256",
            b"".join(s.files[f"{s.edition}/sealed.sha256"].splitlines(keepends=True)[1:]),
        ),
    ),
    "the seal's clip set edited": (
        Check.SEAL,
        lambda s: s.with_json(
            f"{s.edition}/seal.json", lambda d: d.update(clip_set_sha256="0" * 64)
        ),
    ),
    "the seal's clip set, seen in the fields": (
        Check.EDITION,
        lambda s: s.with_json(
            f"{s.edition}/seal.json", lambda d: d.update(clip_set_sha256="0" * 64)
        ),
    ),
    "the seal's keys replaced": (Check.PUBLISHED_KEYS, foreign_seal),
    "the seal dropped": (Check.SEAL, lambda s: s.without(f"{s.edition}/seal.json")),
    "the vocabulary dropped": (Check.SEAL, lambda s: s.without(f"{s.edition}/vocabulary.txt")),
    "a key twice in the seal": (
        Check.SEAL,
        lambda s: s.with_file(
            f"{s.edition}/seal.json", doubled_key(s.files[f"{s.edition}/seal.json"], "edition")
        ),
    ),
    "a file added to the edition": (
        Check.SEAL,
        lambda s: s.with_file(f"{s.edition}/notes.txt", b"hello\n"),
    ),
    "sealed labels added": (
        Check.DERIVED,
        lambda s: s.with_file(f"{s.edition}/labels/labels-v1.age", b"age\n"),
    ),
    "labels revealed by nobody": (
        Check.REVEAL,
        lambda s: s.with_file(f"{s.edition}/revealed/labels-v1.jsonl", b"{}\n"),
    ),
    "the edition renamed": (
        Check.SEAL,
        lambda s: rederived({n.replace(EDITION, "another-edition"): d for n, d in s.files.items()}),
    ),
}


@pytest.mark.parametrize("name", TAMPERS)
def test_a_change_is_found_by_the_check_that_is_meant_for_it(
    name: str, story: Story, tmp_path: Path
) -> None:
    check, tamper = TAMPERS[name]
    changed = tamper(story)
    assert changed != story.files
    report = verify(pack(changed, tmp_path / "bundle.tar"))
    assert check in failed(report)
    assert not report.holds


REVEALED: dict[str, Callable[[Files, str], Files]] = {
    "revealed labels edited": lambda f, e: (
        f
        | {
            f"{e}/revealed/labels-v1.jsonl": f[f"{e}/revealed/labels-v1.jsonl"].replace(
                b"glosses", b"glossed", 1
            )
        }
    ),
    "revealed clip sums with another salt": lambda f, e: (
        f | {f"{e}/revealed/clips.sha256": flipped(f[f"{e}/revealed/clips.sha256"], 12)}
    ),
    "revealed labels dropped": lambda f, e: {
        n: d for n, d in f.items() if n != f"{e}/revealed/labels-v1.jsonl"
    },
    "clip sums dropped": lambda f, e: {
        n: d for n, d in f.items() if n != f"{e}/revealed/clips.sha256"
    },
    "two label versions exchanged": lambda f, e: swapped(
        f, f"{e}/revealed/labels-v1.jsonl", f"{e}/revealed/labels-v2.jsonl"
    ),
    "labels of a version that nobody added": lambda f, e: (
        f | {f"{e}/revealed/labels-v9.jsonl": f[f"{e}/revealed/labels-v1.jsonl"]}
    ),
}


@pytest.fixture(scope="module")
def revealed() -> Files:
    return unpack(shared_revealed_bundle())


@pytest.mark.parametrize("name", REVEALED)
def test_a_change_to_what_was_revealed_is_found(name: str, revealed: Files, tmp_path: Path) -> None:
    assert failed(verify(pack(revealed, tmp_path / "whole.tar"))) == set()
    changed = resummed(REVEALED[name](revealed, f"editions/{EDITION}"))
    assert Check.REVEAL in failed(verify(pack(changed, tmp_path / "changed.tar")))
