"""Single changes to the log: statements, checkpoint, and what an insider could add: each found, and by the right check."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from manifests.encoding import canonical_json
from manifests.statements import RunVoided
from orchestrator.evidence.rules.bundle import LOG_CHECKPOINT, LOG_ENTRIES
from orchestrator.evidence.rules.catalogue import Check
from orchestrator.keys.pem.signing_keys import generate_signing_keys
from tests.support.bundle_edits import (
    Files,
    entries_of,
    pack,
    relogged,
    resummed,
    with_entries,
)
from tests.support.bundle_story import (
    Story,
    doubled_key,
    fourth_run_appended,
    fourth_run_relogged,
    reordered,
    shared,
    signed_by,
    signed_note,
    without_void,
)
from tests.support.synthetic_evidence import (
    ORIGIN,
    failed,
    verify,
)


@pytest.fixture(scope="module")
def story() -> Story:
    return shared()


Tamper = Callable[[Story], Files]

TAMPERS: dict[str, tuple[Check, Tamper]] = {
    # the log, by an outsider
    "a statement dropped": (
        Check.STATEMENTS,
        lambda s: with_entries(s.files, entries_of(s.files)[:9] + entries_of(s.files)[10:]),
    ),
    "the last statement dropped": (
        Check.CHECKPOINT,
        lambda s: with_entries(s.files, entries_of(s.files)[:-1]),
    ),
    "the log cut within a line": (
        Check.STATEMENTS,
        lambda s: s.with_file(LOG_ENTRIES, s.files[LOG_ENTRIES][:-9]),
    ),
    "a statement doubled in place": (
        Check.STATEMENTS,
        lambda s: with_entries(s.files, [*entries_of(s.files)[:9], *entries_of(s.files)[8:]]),
    ),
    "a statement added again at the end": (
        Check.STATEMENTS,
        lambda s: with_entries(s.files, [*entries_of(s.files), entries_of(s.files)[5]]),
    ),
    "two statements exchanged": (Check.STATEMENTS, lambda s: reordered(s, 5, 6)),
    "the first statement moved": (Check.STATEMENTS, lambda s: reordered(s, 0, 1)),
    "all statements dropped": (Check.STATEMENTS, lambda s: with_entries(s.files, [])),
    "the quota edited": (
        Check.STATEMENTS,
        lambda s: s.with_statement("edition-sealed", lambda d: d["quota"].update(certified_runs=9)),
    ),
    "a timestamp edited": (
        Check.STATEMENTS,
        lambda s: s.with_statement("run-started", lambda d: d.update(at="2026-02-01T00:00:00Z")),
    ),
    "an outcome edited": (
        Check.STATEMENTS,
        lambda s: s.with_statement(
            "run-finished", lambda d: d.update(outcome="completed"), "crashed"
        ),
    ),
    "a figure edited": (
        Check.STATEMENTS,
        lambda s: s.with_statement("run-scored", lambda d: d["figures"].update(macro_f1=1.0)),
    ),
    "an image edited": (
        Check.STATEMENTS,
        lambda s: s.with_statement(
            "run-reserved", lambda d: d["image"].update(platform="linux/arm64")
        ),
    ),
    "a void removed": (Check.STATEMENTS, without_void),
    "a void's reason edited": (
        Check.STATEMENTS,
        lambda s: s.with_statement("run-voided", lambda d: d.update(reason="another")),
    ),
    "a label commitment edited": (
        Check.STATEMENTS,
        lambda s: s.with_statement("labels-added", lambda d: d["labels"].update(sha256="0" * 64)),
    ),
    "a rotation's new key edited": (
        Check.STATEMENTS,
        lambda s: s.with_statement("key-rotated", lambda d: d["new_key"].update(key_id="0" * 64)),
    ),
    "a signature of another statement": (
        Check.STATEMENTS,
        lambda s: s.with_leaf(
            5,
            lambda e: canonical_json(
                json.loads(e) | {"signatures": json.loads(entries_of(s.files)[6])["signatures"]}
            ),
        ),
    ),
    "a statement signed by a foreign key": (
        Check.STATEMENTS,
        lambda s: s.with_leaf(5, lambda e: signed_by(e, generate_signing_keys(), "run")),
    ),
    "a statement signed by the scorer's key": (
        Check.STATEMENTS,
        lambda s: s.with_leaf(5, lambda e: signed_by(e, s.keys, "scorer")),
    ),
    "a key twice in an envelope": (
        Check.STATEMENTS,
        lambda s: s.with_leaf(5, lambda e: doubled_key(e, "payload")),
    ),
    "a field added to an envelope": (
        Check.STATEMENTS,
        lambda s: s.with_leaf(5, lambda e: canonical_json(json.loads(e) | {"x": 1})),
    ),
    "a space in an envelope": (
        Check.CHECKPOINT,
        lambda s: s.with_leaf(5, lambda e: e.replace(b",", b", ", 1)),
    ),
    "base64 in a second spelling": (
        Check.STATEMENTS,
        lambda s: s.with_leaf(5, lambda e: e.replace(b'"sig":"', b'"sig":"\\n', 1)),
    ),
    "an envelope of another type": (
        Check.STATEMENTS,
        lambda s: s.with_leaf(
            5, lambda e: e.replace(b"vnd.piste.statement", b"vnd.piste.something")
        ),
    ),
    # the checkpoint
    "no checkpoint": (
        Check.CHECKPOINT,
        lambda s: resummed({n: d for n, d in s.files.items() if n != LOG_CHECKPOINT}),
    ),
    "a checkpoint of another root": (
        Check.CHECKPOINT,
        lambda s: s.with_file(LOG_CHECKPOINT, signed_note(s, root=bytes(32))),
    ),
    "a checkpoint of another size": (
        Check.CHECKPOINT,
        lambda s: s.with_file(LOG_CHECKPOINT, signed_note(s, size=7)),
    ),
    "a checkpoint of another log": (
        Check.CHECKPOINT,
        lambda s: s.with_file(LOG_CHECKPOINT, signed_note(s, origin="example.org/other")),
    ),
    "a checkpoint with a changed signature": (
        Check.CHECKPOINT,
        lambda s: s.with_file(LOG_CHECKPOINT, s.files[LOG_CHECKPOINT][:-9] + b"AAAAAAA=\n"),
    ),
    "a checkpoint with a line more": (
        Check.CHECKPOINT,
        lambda s: s.with_file(
            LOG_CHECKPOINT, s.files[LOG_CHECKPOINT].replace(b"\n\n", b"\nmore\n\n")
        ),
    ),
    # the log, by an insider who holds every key
    "a fourth run spliced in": (Check.QUOTA, fourth_run_appended),
    "a fourth run, and a new checkpoint": (Check.QUOTA, fourth_run_relogged),
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


def test_an_insider_who_takes_a_void_back_is_found_by_a_checkpoint_that_was_kept(
    story: Story, tmp_path: Path
) -> None:
    statements = [s for s in story.statements() if not isinstance(s, RunVoided)]
    assert story.scenario.retired is not None
    kept = [s for s in statements if s.kind != "key-rotated"]
    changed = relogged(story.files, kept, keys=story.scenario.retired, origin=ORIGIN)
    path = pack(changed, tmp_path / "bundle.tar")
    assert Check.STATEMENTS not in failed(verify(path))
    assert Check.OLDER in failed(verify(path, older_checkpoint=story.older))


def test_a_forked_log_under_other_keys_is_found_by_a_key_that_is_held(
    story: Story, tmp_path: Path
) -> None:
    keys = generate_signing_keys()
    first, *rest = story.statements()
    begun = first.model_copy(update={"keys": keys.held()})
    kept = [begun, *(s for s in rest if s.kind != "key-rotated")]
    path = pack(relogged(story.files, kept, keys=keys, origin=ORIGIN), tmp_path / "bundle.tar")
    held = story.keys.signer("run").public_key.key_id
    assert Check.ANCHOR in failed(verify(path, key_ids=(held,)))
    assert Check.OLDER in failed(verify(path, older_checkpoint=story.older))
    assert Check.PUBLISHED_KEYS in failed(verify(path))


def test_another_origin_than_the_one_announced_is_found(story: Story, tmp_path: Path) -> None:
    path = pack(story.files, tmp_path / "bundle.tar")
    assert failed(verify(path, origin=ORIGIN)) == set()
    assert failed(verify(path, origin="example.org/other")) == {Check.ANCHOR}


def test_an_older_checkpoint_of_the_same_log_is_extended(story: Story, tmp_path: Path) -> None:
    path = pack(story.files, tmp_path / "bundle.tar")
    assert failed(verify(path, older_checkpoint=story.older)) == set()


def test_an_older_checkpoint_that_is_larger_than_the_log_is_not_extended(
    story: Story, tmp_path: Path
) -> None:
    path = pack(story.files, tmp_path / "bundle.tar")
    larger = signed_note(story, size=1000)
    assert failed(verify(path, older_checkpoint=larger)) == {Check.OLDER}


def test_base64_of_an_envelope_is_read_in_one_spelling_only(story: Story, tmp_path: Path) -> None:
    entries = entries_of(story.files)
    outer = json.loads(entries[5])
    outer["payload"] = base64.urlsafe_b64encode(b"\xff\xfe\xfd" * 9).decode()
    entries[5] = canonical_json(outer)
    report = verify(pack(with_entries(story.files, entries), tmp_path / "bundle.tar"))
    assert Check.STATEMENTS in failed(report)
