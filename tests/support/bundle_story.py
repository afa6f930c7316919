"""A story's bundle, and the changes that an outsider and an insider can make to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from manifests.digests import sha256_hex
from manifests.encoding import canonical_json
from manifests.statements import RunReserved, RunStarted, Statement
from orchestrator.evidence.rules.bundle import LOG_CHECKPOINT
from orchestrator.keys.pem.signing_keys import generate_signing_keys
from orchestrator.keys.signing_port import SigningKeys
from orchestrator.ledger.append import seal_entry
from orchestrator.ledger.rules.checkpoint import Checkpoint, parse_checkpoint, render_checkpoint
from orchestrator.runs.rules.run_files import SUMS
from tests.support.bundle_edits import (
    Files,
    edited_json,
    entries_of,
    parsed,
    position_of,
    rederived,
    relogged,
    resigned_run,
    resummed,
    signed_envelope,
    statement_of,
    unpack,
    with_entries,
    with_payload,
)
from tests.support.synthetic_evidence import (
    EDITION,
    ORIGIN,
    Scenario,
    shared_bundle,
    shared_story,
)


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


def shared() -> Story:
    """Return the story of this process; nobody changes its files in place."""
    scenario = shared_story()
    workspace = scenario.open()
    older = workspace.ledger.checkpoint()
    return Story(unpack(shared_bundle()), scenario, workspace.signing, older)


def swapped(files: Files, one: str, other: str) -> Files:
    return {**files, one: files[other], other: files[one]}


def swap_folders(story: Story, one: str, other: str) -> Files:
    ids = {story.id(one): story.id(other), story.id(other): story.id(one)}
    moved = {}
    for name, data in story.files.items():
        parts = name.split("/")
        if parts[0] == "runs":
            parts[1] = ids.get(parts[1], parts[1])
        moved["/".join(parts)] = data
    return rederived(moved)


def copied_run(story: Story) -> Files:
    prefix = f"runs/{story.id('first')}/"
    copies = {
        f"runs/{'0' * 16}/{name.removeprefix(prefix)}": data
        for name, data in story.files.items()
        if name.startswith(prefix)
    }
    return rederived({**story.files, **copies})


def fourth_run(story: Story) -> list[Statement]:
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


def fourth_run_relogged(story: Story) -> Files:
    """Sign the log with the extra runs anew, and its checkpoint too."""
    assert story.scenario.retired is not None
    return relogged(
        story.files,
        fourth_run(story),
        keys=story.scenario.retired,
        later_keys=story.keys,
        origin=ORIGIN,
    )


def fourth_run_appended(story: Story) -> Files:
    """Append the extra runs with true run signatures, under the old checkpoint."""
    log = fourth_run_relogged(story)
    first = len(entries_of(story.files))
    return with_entries(story.files, [*entries_of(story.files), *entries_of(log)[first:]])


def signed_note(story: Story, **changes: object) -> bytes:
    found = parse_checkpoint(story.files[LOG_CHECKPOINT], source="note").checkpoint
    fields = {"origin": found.origin, "size": found.size, "root": found.root} | changes
    signer = story.keys.signer("log")
    changed = Checkpoint(**fields)  # type: ignore[arg-type]  # a test's own fields
    return render_checkpoint(changed, key=signer.public_key, sign=signer.sign)


def signed_by(envelope: bytes, keys: SigningKeys, role: str) -> bytes:
    [statement] = parsed([envelope])
    signer = keys.scorer if role == "scorer" else keys.run
    assert signer is not None
    return seal_entry(statement, signer)[0].envelope


def reordered(story: Story, *places: int) -> Files:
    entries = entries_of(story.files)
    entries[places[0]], entries[places[1]] = entries[places[1]], entries[places[0]]
    return with_entries(story.files, entries)


def without_void(story: Story) -> Files:
    entries = entries_of(story.files)
    del entries[position_of(entries, "run-voided")]
    return with_entries(story.files, entries)


def doubled_key(data: bytes, key: str) -> bytes:
    return data.replace(b"{", b'{"' + key.encode() + b'":"x",', 1)


def signed_by_retired(story: Story) -> Files:
    assert story.scenario.retired is not None
    return resigned_run(story.files, story.id("second"), story.scenario.retired.signer("run"))


def signed_by_scorer(story: Story) -> Files:
    return resigned_run(story.files, story.id("first"), story.keys.signer("scorer"))


def signed_by_foreigner(story: Story) -> Files:
    return resigned_run(story.files, story.id("first"), generate_signing_keys().signer("run"))


def with_envelope(story: Story, change: Callable[[dict[str, Any]], object]) -> Files:
    name = story.run("second", "run.dsse.json")
    statement = statement_of(story.files[name])
    change(statement)
    signed = signed_envelope(canonical_json(statement), story.keys.signer("run"))
    return story.with_file(name, signed)


def with_sum_lines(story: Story, change: Callable[[list[bytes]], object]) -> Files:
    lines = story.files[SUMS].splitlines(keepends=True)
    change(lines)
    return {**story.files, SUMS: b"".join(lines)}


def with_run_lines(story: Story, change: Callable[[list[bytes]], object]) -> Files:
    name = story.run("first", SUMS)
    lines = story.files[name].splitlines(keepends=True)
    change(lines)
    return story.with_file(name, b"".join(lines))


def foreign_seal(story: Story) -> Files:
    foreign = [key.model_dump(mode="json") for key in generate_signing_keys().held()]
    return story.with_json(f"{story.edition}/seal.json", lambda d: d.update(keys=foreign))


def key_name(story: Story, role: str) -> str:
    return next(name for name in story.files if name.startswith(f"keys/{role}-"))


def resummed_run(story: Story, run: str, file: str, data: bytes) -> Files:
    """Change a file of a run and its line, as somebody without the key can."""
    name = story.run(run, SUMS)
    old = sha256_hex(story.files[story.run(run, file)]).encode()
    sums = story.files[name].replace(old, sha256_hex(data).encode())
    return resummed({**story.files, story.run(run, file): data, name: sums})
