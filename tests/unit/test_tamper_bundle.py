"""Single changes to an exported bundle, each found, and by the check that is meant to find it.

An outsider can change files and make the sums fit again. An insider also holds signing keys.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks.bundle_edits import (
    Files,
    edited_json,
    entries_of,
    flipped,
    pack,
    parsed,
    position_of,
    rederived,
    relogged,
    resigned_run,
    resummed,
    signed_envelope,
    statement_of,
    top_of,
    unpack,
    with_entries,
    with_payload,
)
from benchmarks.synthetic_evidence import (
    EDITION,
    ORIGIN,
    Scenario,
    failed,
    shared_bundle,
    shared_revealed_bundle,
    shared_story,
    verify,
)
from manifests.digests import sha256_hex
from manifests.encoding import canonical_json
from manifests.statements import RunReserved, RunStarted, RunVoided, Statement
from orchestrator.adapters.ledger_append import seal_entry
from orchestrator.adapters.signing_keys import generate_signing_keys
from orchestrator.core.bundle import BUNDLE_FILE, LOG_CHECKPOINT, LOG_ENTRIES
from orchestrator.core.checkpoint import Checkpoint, parse_checkpoint, render_checkpoint
from orchestrator.core.evidence import SUMS
from orchestrator.core.verification.catalogue import Check
from orchestrator.ports.signing import SigningKeys


@dataclass(frozen=True)
class Story:
    """A bundle's files, and what an insider holds."""

    files: Files
    scenario: Scenario
    keys: SigningKeys
    older: bytes

    def run(self, name: str, file: str) -> str:
        return f"runs/{self.scenario.runs[name]}/{file}"

    def id(self, name: str) -> str:
        return self.scenario.runs[name]

    @property
    def edition(self) -> str:
        return f"editions/{EDITION}"

    def with_file(self, name: str, data: bytes) -> Files:
        return resummed({**self.files, name: data})

    def without(self, prefix: str) -> Files:
        return rederived({n: d for n, d in self.files.items() if not n.startswith(prefix)})

    def with_json(self, name: str, change: Callable[[dict[str, Any]], object]) -> Files:
        return self.with_file(name, edited_json(self.files[name], change))

    def insider(self, run: str, file: str, data: bytes) -> Files:
        changed = {**self.files, self.run(run, file): data}
        return resigned_run(changed, self.id(run), self.keys.signer("run"))

    def insider_json(
        self, run: str, file: str, change: Callable[[dict[str, Any]], object]
    ) -> Files:
        return self.insider(run, file, edited_json(self.files[self.run(run, file)], change))

    def with_statement(
        self, kind: str, change: Callable[[dict[str, Any]], object], run: str | None = None
    ) -> Files:
        entries = entries_of(self.files)
        place = position_of(entries, kind, run_id=None if run is None else self.id(run))
        entries[place] = with_payload(entries[place], change)
        return with_entries(self.files, entries)

    def with_leaf(self, place: int, change: Callable[[bytes], bytes]) -> Files:
        entries = entries_of(self.files)
        entries[place] = change(entries[place])
        return with_entries(self.files, entries)

    def statements(self) -> list[Statement]:
        return parsed(entries_of(self.files))


@pytest.fixture(scope="module")
def story() -> Story:
    scenario = shared_story()
    workspace = scenario.open()
    older = workspace.ledger.checkpoint()
    return Story(unpack(shared_bundle()), scenario, workspace.signing, older)


def _swap(files: Files, one: str, other: str) -> Files:
    return {**files, one: files[other], other: files[one]}


def _swap_folders(story: Story, one: str, other: str) -> Files:
    ids = {story.id(one): story.id(other), story.id(other): story.id(one)}
    moved = {}
    for name, data in story.files.items():
        parts = name.split("/")
        if parts[0] == "runs":
            parts[1] = ids.get(parts[1], parts[1])
        moved["/".join(parts)] = data
    return rederived(moved)


def _copied_run(story: Story) -> Files:
    prefix = f"runs/{story.id('first')}/"
    copies = {
        f"runs/{'0' * 16}/{name.removeprefix(prefix)}": data
        for name, data in story.files.items()
        if name.startswith(prefix)
    }
    return rederived({**story.files, **copies})


def _fourth_run(story: Story) -> list[Statement]:
    """Return the log with runs added until one too many has started."""
    statements = story.statements()
    begun = [s for s in statements if isinstance(s, RunReserved) and s.edition == EDITION]
    template = next(s for s in begun if s.run_id == story.id("first"))
    started = next(
        s for s in statements if isinstance(s, RunStarted) and s.run_id == template.run_id
    )
    attempts = sum(s.team == template.team for s in begun)
    for number in range(2):
        run_id = f"{number:016x}"
        attempt = attempts + 1 + number
        statements.append(template.model_copy(update={"run_id": run_id, "attempt": attempt}))
        statements.append(started.model_copy(update={"run_id": run_id}))
    return statements


def _fourth_run_relogged(story: Story) -> Files:
    """Sign the log with the extra runs anew, and its checkpoint too."""
    assert story.scenario.retired is not None
    return relogged(
        story.files,
        _fourth_run(story),
        keys=story.scenario.retired,
        later_keys=story.keys,
        origin=ORIGIN,
    )


def _fourth_run_appended(story: Story) -> Files:
    """Append the extra runs with true run signatures, under the old checkpoint."""
    log = _fourth_run_relogged(story)
    first = len(entries_of(story.files))
    return with_entries(story.files, [*entries_of(story.files), *entries_of(log)[first:]])


def _note(story: Story, **changes: object) -> bytes:
    found = parse_checkpoint(story.files[LOG_CHECKPOINT], source="note").checkpoint
    fields = {"origin": found.origin, "size": found.size, "root": found.root} | changes
    signer = story.keys.signer("log")
    changed = Checkpoint(**fields)  # type: ignore[arg-type]  # a test's own fields
    return render_checkpoint(changed, key=signer.public_key, sign=signer.sign)


def _signed_by(envelope: bytes, keys: SigningKeys, role: str) -> bytes:
    [statement] = parsed([envelope])
    signer = keys.scorer if role == "scorer" else keys.run
    assert signer is not None
    return seal_entry(statement, signer)[0].envelope


def _order(story: Story, *places: int) -> Files:
    entries = entries_of(story.files)
    entries[places[0]], entries[places[1]] = entries[places[1]], entries[places[0]]
    return with_entries(story.files, entries)


def _without_void(story: Story) -> Files:
    entries = entries_of(story.files)
    del entries[position_of(entries, "run-voided")]
    return with_entries(story.files, entries)


def _doubled_key(data: bytes, key: str) -> bytes:
    return data.replace(b"{", b'{"' + key.encode() + b'":"x",', 1)


def _retired(story: Story) -> Files:
    assert story.scenario.retired is not None
    return resigned_run(story.files, story.id("second"), story.scenario.retired.signer("run"))


def _scorer_as_run(story: Story) -> Files:
    return resigned_run(story.files, story.id("first"), story.keys.signer("scorer"))


def _foreign(story: Story) -> Files:
    return resigned_run(story.files, story.id("first"), generate_signing_keys().signer("run"))


def _envelope(story: Story, change: Callable[[dict[str, Any]], object]) -> Files:
    name = story.run("second", "run.dsse.json")
    statement = statement_of(story.files[name])
    change(statement)
    signed = signed_envelope(canonical_json(statement), story.keys.signer("run"))
    return story.with_file(name, signed)


def _line(story: Story, change: Callable[[list[bytes]], object]) -> Files:
    lines = story.files[SUMS].splitlines(keepends=True)
    change(lines)
    return {**story.files, SUMS: b"".join(lines)}


def _run_line(story: Story, change: Callable[[list[bytes]], object]) -> Files:
    name = story.run("first", SUMS)
    lines = story.files[name].splitlines(keepends=True)
    change(lines)
    return story.with_file(name, b"".join(lines))


def _foreign_seal(story: Story) -> Files:
    foreign = [key.model_dump(mode="json") for key in generate_signing_keys().held()]
    return story.with_json(f"{story.edition}/seal.json", lambda d: d.update(keys=foreign))


def _key_name(story: Story, role: str) -> str:
    return next(name for name in story.files if name.startswith(f"keys/{role}-"))


def _resummed_run(story: Story, run: str, file: str, data: bytes) -> Files:
    """Change a file of a run and its line, as somebody without the key can."""
    name = story.run(run, SUMS)
    old = sha256_hex(story.files[story.run(run, file)]).encode()
    sums = story.files[name].replace(old, sha256_hex(data).encode())
    return resummed({**story.files, story.run(run, file): data, name: sums})


Tamper = Callable[[Story], Files]
S, R = Check.STATEMENTS, Check.RULES

TAMPERS: dict[str, tuple[Check, Tamper]] = {
    # the log, by an outsider
    "a statement dropped": (
        S,
        lambda s: with_entries(s.files, entries_of(s.files)[:9] + entries_of(s.files)[10:]),
    ),
    "the last statement dropped": (
        Check.CHECKPOINT,
        lambda s: with_entries(s.files, entries_of(s.files)[:-1]),
    ),
    "the log cut within a line": (S, lambda s: s.with_file(LOG_ENTRIES, s.files[LOG_ENTRIES][:-9])),
    "a statement doubled in place": (
        S,
        lambda s: with_entries(s.files, [*entries_of(s.files)[:9], *entries_of(s.files)[8:]]),
    ),
    "a statement added again at the end": (
        S,
        lambda s: with_entries(s.files, [*entries_of(s.files), entries_of(s.files)[5]]),
    ),
    "two statements exchanged": (S, lambda s: _order(s, 5, 6)),
    "the first statement moved": (S, lambda s: _order(s, 0, 1)),
    "all statements dropped": (S, lambda s: with_entries(s.files, [])),
    "the quota edited": (
        S,
        lambda s: s.with_statement("edition-sealed", lambda d: d["quota"].update(certified_runs=9)),
    ),
    "a timestamp edited": (
        S,
        lambda s: s.with_statement("run-started", lambda d: d.update(at="2026-02-01T00:00:00Z")),
    ),
    "an outcome edited": (
        S,
        lambda s: s.with_statement(
            "run-finished", lambda d: d.update(outcome="completed"), "crashed"
        ),
    ),
    "a figure edited": (
        S,
        lambda s: s.with_statement("run-scored", lambda d: d["figures"].update(macro_f1=1.0)),
    ),
    "an image edited": (
        S,
        lambda s: s.with_statement(
            "run-reserved", lambda d: d["image"].update(platform="linux/arm64")
        ),
    ),
    "a void removed": (S, _without_void),
    "a void's reason edited": (
        S,
        lambda s: s.with_statement("run-voided", lambda d: d.update(reason="another")),
    ),
    "a label commitment edited": (
        S,
        lambda s: s.with_statement("labels-added", lambda d: d["labels"].update(sha256="0" * 64)),
    ),
    "a rotation's new key edited": (
        S,
        lambda s: s.with_statement("key-rotated", lambda d: d["new_key"].update(key_id="0" * 64)),
    ),
    "a signature of another statement": (
        S,
        lambda s: s.with_leaf(
            5,
            lambda e: canonical_json(
                json.loads(e) | {"signatures": json.loads(entries_of(s.files)[6])["signatures"]}
            ),
        ),
    ),
    "a statement signed by a foreign key": (
        S,
        lambda s: s.with_leaf(5, lambda e: _signed_by(e, generate_signing_keys(), "run")),
    ),
    "a statement signed by the scorer's key": (
        S,
        lambda s: s.with_leaf(5, lambda e: _signed_by(e, s.keys, "scorer")),
    ),
    "a key twice in an envelope": (
        S,
        lambda s: s.with_leaf(5, lambda e: _doubled_key(e, "payload")),
    ),
    "a field added to an envelope": (
        S,
        lambda s: s.with_leaf(5, lambda e: canonical_json(json.loads(e) | {"x": 1})),
    ),
    "a space in an envelope": (
        Check.CHECKPOINT,
        lambda s: s.with_leaf(5, lambda e: e.replace(b",", b", ", 1)),
    ),
    "base64 in a second spelling": (
        S,
        lambda s: s.with_leaf(5, lambda e: e.replace(b'"sig":"', b'"sig":"\\n', 1)),
    ),
    "an envelope of another type": (
        S,
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
        lambda s: s.with_file(LOG_CHECKPOINT, _note(s, root=bytes(32))),
    ),
    "a checkpoint of another size": (
        Check.CHECKPOINT,
        lambda s: s.with_file(LOG_CHECKPOINT, _note(s, size=7)),
    ),
    "a checkpoint of another log": (
        Check.CHECKPOINT,
        lambda s: s.with_file(LOG_CHECKPOINT, _note(s, origin="example.org/other")),
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
    "a fourth run spliced in": (Check.QUOTA, _fourth_run_appended),
    "a fourth run, and a new checkpoint": (Check.QUOTA, _fourth_run_relogged),
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
    "the seal's keys replaced": (Check.PUBLISHED_KEYS, _foreign_seal),
    "the seal dropped": (Check.SEAL, lambda s: s.without(f"{s.edition}/seal.json")),
    "the vocabulary dropped": (Check.SEAL, lambda s: s.without(f"{s.edition}/vocabulary.txt")),
    "a key twice in the seal": (
        Check.SEAL,
        lambda s: s.with_file(
            f"{s.edition}/seal.json", _doubled_key(s.files[f"{s.edition}/seal.json"], "edition")
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
    # a run, by an outsider
    "a record's outcome edited": (
        Check.SIGNATURE,
        lambda s: _resummed_run(
            s,
            "crashed",
            "run.json",
            edited_json(
                s.files[s.run("crashed", "run.json")], lambda d: d.update(outcome="completed")
            ),
        ),
    ),
    "a record's outcome edited, unlisted": (
        Check.LISTING,
        lambda s: s.with_json(
            s.run("crashed", "run.json"), lambda d: d.update(outcome="completed")
        ),
    ),
    "predictions of two runs exchanged": (
        Check.KEPT,
        lambda s: resummed(
            _swap(
                s.files, s.run("first", "predictions.jsonl"), s.run("voided", "predictions.jsonl")
            )
        ),
    ),
    "cards of two runs exchanged": (
        Check.LISTING,
        lambda s: resummed(
            _swap(s.files, s.run("first", "score.json"), s.run("second", "score.json"))
        ),
    ),
    "two runs' folders exchanged": (Check.RECORD, lambda s: _swap_folders(s, "first", "second")),
    "two runs' folders exchanged, seen in the files": (
        Check.KEPT,
        lambda s: _swap_folders(s, "first", "second"),
    ),
    "a run's folder dropped": (Check.RUNS, lambda s: s.without(f"runs/{s.id('first')}/")),
    "a run that failed dropped": (Check.RUNS, lambda s: s.without(f"runs/{s.id('crashed')}/")),
    "a run's folder copied": (Check.RUNS, _copied_run),
    "a card's digit changed": (
        Check.LISTING,
        lambda s: s.with_json(
            s.run("first", "score.json"), lambda d: d["public"].update(top1=0.99)
        ),
    ),
    "a signature of another run": (
        Check.SIGNATURE,
        lambda s: s.with_file(
            s.run("first", "SHA256SUMS.sig"), s.files[s.run("second", "SHA256SUMS.sig")]
        ),
    ),
    "a signature with a space": (
        Check.SIGNATURE,
        lambda s: s.with_file(
            s.run("first", "SHA256SUMS.sig"), b" " + s.files[s.run("first", "SHA256SUMS.sig")]
        ),
    ),
    "a signature dropped": (Check.SIGNATURE, lambda s: s.without(s.run("first", "SHA256SUMS.sig"))),
    "the sums dropped": (
        Check.LISTING,
        lambda s: resummed({n: d for n, d in s.files.items() if n != s.run("first", SUMS)}),
    ),
    "an envelope of another run": (
        Check.ENVELOPE,
        lambda s: s.with_file(
            s.run("second", "run.dsse.json"), s.files[s.run("crashed", "run.dsse.json")]
        ),
    ),
    "an envelope dropped": (Check.ENVELOPE, lambda s: s.without(s.run("first", "run.dsse.json"))),
    "a key twice in an envelope of a run": (
        Check.ENVELOPE,
        lambda s: s.with_file(
            s.run("first", "run.dsse.json"),
            _doubled_key(s.files[s.run("first", "run.dsse.json")], "payload"),
        ),
    ),
    "a private line dropped": (
        Check.LISTING,
        lambda s: s.with_file(
            s.run("first", "private.sha256"), s.files[s.run("first", "private.sha256")][67:]
        ),
    ),
    "a file added to a run": (
        Check.LISTING,
        lambda s: s.with_file(s.run("first", "more.txt"), b"more\n"),
    ),
    "a run's line doubled": (
        Check.LISTING,
        lambda s: _run_line(s, lambda lines: lines.insert(1, lines[0])),
    ),
    "a run's line malformed": (
        Check.LISTING,
        lambda s: _run_line(s, lambda lines: lines.append(b"no line\n")),
    ),
    "a run's line with a path that climbs out": (
        Check.LISTING,
        lambda s: _run_line(s, lambda lines: lines.append(b"0" * 64 + b"  zz/../../x\n")),
    ),
    "a run's line in capitals": (
        Check.LISTING,
        lambda s: _run_line(s, lambda lines: lines.__setitem__(0, lines[0].upper())),
    ),
    "a run's lines with carriage returns": (
        Check.LISTING,
        lambda s: s.with_file(
            s.run("first", SUMS), s.files[s.run("first", SUMS)].replace(b"\n", b"\r\n")
        ),
    ),
    "later cards dropped": (Check.CARD, lambda s: s.without(s.run("first", "scores/"))),
    "later cards moved to another run": (
        Check.CARD,
        lambda s: rederived(
            {
                n.replace(s.run("first", "scores/"), s.run("second", "scores/")): d
                for n, d in s.files.items()
            }
        ),
    ),
    "the card dropped": (
        Check.CARD,
        lambda s: resummed({n: d for n, d in s.files.items() if n != s.run("first", "score.json")}),
    ),
    # a run, signed anew
    "a run signed anew by a foreign key": (Check.SIGNATURE, _foreign),
    "a run signed anew by the scorer's key": (Check.SIGNATURE, _scorer_as_run),
    "a run signed by a key that was retired": (Check.SIGNATURE, _retired),
    "a card's digit, signed anew": (
        Check.CARD,
        lambda s: s.insider_json("second", "score.json", lambda d: d["public"].update(top1=0.99)),
    ),
    "a key twice in a card, signed anew": (
        Check.CARD,
        lambda s: s.insider(
            "second", "score.json", _doubled_key(s.files[s.run("second", "score.json")], "labels")
        ),
    ),
    "an image's digest, signed anew": (
        Check.IDENTITY,
        lambda s: s.insider_json(
            "second", "run.json", lambda d: d["image"].update(config_digest="sha256:" + "0" * 64)
        ),
    ),
    "a profile's digest, signed anew": (
        Check.RECORD,
        lambda s: s.insider_json("second", "run.json", lambda d: d.update(profile_sha256="0" * 64)),
    ),
    "the run's number, signed anew": (
        Check.RECORD,
        lambda s: s.insider_json("second", "run.json", lambda d: d.update(certified_run=1)),
    ),
    "a void hidden, signed anew": (
        Check.RECORD,
        lambda s: s.insider_json(
            "voided", "run.json", lambda d: d.update(voided=None, certified_run=2)
        ),
    ),
    "predictions, signed anew": (
        Check.KEPT,
        lambda s: s.insider(
            "second", "predictions.jsonl", s.files[s.run("first", "predictions.jsonl")]
        ),
    ),
    "the effective configuration, signed anew": (
        Check.KEPT,
        lambda s: s.insider_json("second", "effective.json", lambda d: d.update(Privileged=True)),
    ),
    "a file that the log does not know, signed": (
        Check.KEPT,
        lambda s: s.insider("second", "more.txt", b"more\n"),
    ),
    "a subject dropped, signed anew": (
        Check.ENVELOPE,
        lambda s: _envelope(s, lambda d: d["subject"].pop()),
    ),
    "a subject's digest, signed anew": (
        Check.ENVELOPE,
        lambda s: _envelope(s, lambda d: d["subject"][0]["digest"].update(sha256="0" * 64)),
    ),
    "a predicate's team, signed anew": (
        Check.ENVELOPE,
        lambda s: _envelope(
            s,
            lambda d: d["predicate"]["buildDefinition"]["externalParameters"].update(team="lumen"),
        ),
    ),
    "another type of predicate, signed anew": (
        Check.ENVELOPE,
        lambda s: _envelope(s, lambda d: d.update(predicateType="https://slsa.dev/provenance/v1")),
    ),
    # what follows from the rest
    "bundle.json's runs edited": (
        Check.DERIVED,
        lambda s: s.with_json(BUNDLE_FILE, lambda d: d["runs"].pop()),
    ),
    "bundle.json's size edited": (
        Check.DERIVED,
        lambda s: s.with_json(BUNDLE_FILE, lambda d: d.update(statements=3)),
    ),
    "bundle.json says it is of one run": (
        Check.DERIVED,
        lambda s: s.with_json(BUNDLE_FILE, lambda d: d.update(of="run")),
    ),
    "bundle.json dropped": (
        Check.DERIVED,
        lambda s: resummed({n: d for n, d in s.files.items() if n != BUNDLE_FILE}),
    ),
    "a key replaced": (
        Check.DERIVED,
        lambda s: s.with_file(_key_name(s, "run"), s.files[_key_name(s, "scorer")]),
    ),
    "a key dropped": (Check.DERIVED, lambda s: s.without(_key_name(s, "log"))),
    "a key added": (
        Check.DERIVED,
        lambda s: s.with_file("keys/run-0000000000000000.pem", s.files[_key_name(s, "scorer")]),
    ),
    "the recipe says yes to all": (Check.DERIVED, lambda s: s.with_file("check.sh", b"exit 0\n")),
    "the recipe's text edited": (Check.DERIVED, lambda s: s.with_file("CHECK.md", b"trust me\n")),
    "a stray file": (Check.DERIVED, lambda s: s.with_file("more.txt", b"more\n")),
    "a run's log added": (
        Check.DERIVED,
        lambda s: s.with_file(s.run("first", "log.age"), b"age\n"),
    ),
    "the private card added": (
        Check.DERIVED,
        lambda s: s.with_file(s.run("first", "score.private.json"), b"{}\n"),
    ),
    "the bundle's sums dropped": (
        Check.BUNDLE,
        lambda s: {n: d for n, d in s.files.items() if n != SUMS},
    ),
    "a line of the bundle's sums dropped": (
        Check.BUNDLE,
        lambda s: _line(s, lambda lines: lines.pop()),
    ),
    "a line added to the bundle's sums": (
        Check.BUNDLE,
        lambda s: _line(s, lambda lines: lines.append(b"0" * 64 + b"  zz\n")),
    ),
    "the bundle's sums out of order": (
        Check.BUNDLE,
        lambda s: _line(s, lambda lines: lines.reverse()),
    ),
}


def test_the_untouched_bundle_holds(story: Story, tmp_path: Path) -> None:
    path = pack(story.files, tmp_path / "bundle.tar", top=top_of(story.files))
    assert failed(verify(path)) == set()


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


def test_there_are_at_least_sixty_of_them() -> None:
    assert len(TAMPERS) >= 60


def test_a_changed_byte_in_any_file_is_found_by_the_sums(story: Story, tmp_path: Path) -> None:
    for name, data in story.files.items():
        changed = {**story.files, name: flipped(data, len(data) // 2)}
        report = verify(pack(changed, tmp_path / "bundle.tar"))
        assert Check.BUNDLE in failed(report), name


def test_a_changed_byte_in_any_file_is_found_without_the_sums(story: Story, tmp_path: Path) -> None:
    for name, data in story.files.items():
        if name != SUMS:
            changed = resummed({**story.files, name: flipped(data, len(data) // 2)})
            found = failed(verify(pack(changed, tmp_path / "bundle.tar")))
            assert found - {Check.BUNDLE}, name


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
    larger = _note(story, size=1000)
    assert failed(verify(path, older_checkpoint=larger)) == {Check.OLDER}


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
    "two label versions exchanged": lambda f, e: _swap(
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


def test_base64_of_an_envelope_is_read_in_one_spelling_only(story: Story, tmp_path: Path) -> None:
    entries = entries_of(story.files)
    outer = json.loads(entries[5])
    outer["payload"] = base64.urlsafe_b64encode(b"\xff\xfe\xfd" * 9).decode()
    entries[5] = canonical_json(outer)
    report = verify(pack(with_entries(story.files, entries), tmp_path / "bundle.tar"))
    assert Check.STATEMENTS in failed(report)
