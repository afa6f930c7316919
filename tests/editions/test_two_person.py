"""Two people, or any of several: recipients set, an edition sealed to them, opened by them alone."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from manifests.errors import MalformedDocument
from orchestrator.editions.epee.epee_folder import EditionFile
from orchestrator.editions.open_clips import open_sealed_clips
from orchestrator.editions.open_labels import find_commitment, open_salted_labels
from orchestrator.editions.seal_edition import SealingTools, seal_edition
from orchestrator.editions.sealed_editions import load_sealed_edition
from orchestrator.keys.age.age_files import AgeKeyring, generate_identity
from orchestrator.keys.rules.recipients import any_of, both_of
from orchestrator.keys.sealing_port import IdentityMissing, Purpose
from orchestrator.support.reporter import SilentReporter
from orchestrator.workspace.set_recipients import (
    OpeningRule,
    RecipientTools,
    set_recipients,
)

NAME = "sample-2026"


@dataclass(frozen=True, slots=True)
class Person:
    file: bytes
    recipient: str


def person() -> Person:
    return Person(*generate_identity())


def recipient_tools(root: Path, sealing: SealingTools) -> RecipientTools:
    return RecipientTools(
        store=sealing.store, keyring=AgeKeyring(root / "keys"), sealer=sealing.sealer
    )


def give(root: Path, name: str, who: Person) -> None:
    (root / "keys" / name).write_bytes(who.file)
    (root / "keys" / name).chmod(0o600)


@dataclass(frozen=True, slots=True)
class Bout:
    root: Path
    tools: SealingTools
    first: Person
    second: Person

    def labels(self) -> bytes:
        sealed = load_sealed_edition(NAME, store=self.tools.store, ledger=self.tools.ledger)
        return open_salted_labels(
            sealed,
            find_commitment(NAME, "labels-v1", self.tools.ledger),
            store=self.tools.store,
            unsealer=AgeKeyring(self.root / "keys").unsealer(Purpose.LABELS),
        )


@pytest.fixture
def bout(
    workspace_root: Path,
    sealing: SealingTools,
    sample: EditionFile,
    tools_at: Callable[[Path], SealingTools],
) -> Bout:
    """An edition whose labels take two people; neither identity is on this host."""
    first, second = person(), person()
    set_recipients(
        Purpose.LABELS,
        OpeningRule.TWO_PERSON,
        [first.recipient, second.recipient],
        tools=recipient_tools(workspace_root, sealing),
    )
    (workspace_root / "keys/labels.agekey").unlink()
    tools = tools_at(workspace_root)
    seal_edition(sample, tools)
    return Bout(workspace_root, tools, first, second)


def test_the_seal_publishes_who_is_needed(bout: Bout) -> None:
    seal = load_sealed_edition(NAME, store=bout.tools.store, ledger=bout.tools.ledger).seal
    assert seal.recipients.labels == both_of(bout.first.recipient, bout.second.recipient)
    assert len(seal.recipients.clips.layers) == 1


def test_a_run_host_without_label_identity_opens_clips_and_no_labels(bout: Bout) -> None:
    sealed = load_sealed_edition(NAME, store=bout.tools.store, ledger=bout.tools.ledger)
    unsealer = AgeKeyring(bout.root / "keys").unsealer(Purpose.CLIPS)
    exam = open_sealed_clips(
        sealed, store=bout.tools.store, unsealer=unsealer, reporter=SilentReporter()
    )
    assert len(list(exam.clip_files())) == 8
    with pytest.raises(IdentityMissing, match=r"labels\.agekey"):
        bout.labels()


@pytest.mark.parametrize("here", ["first", "second"])
def test_one_of_two_is_told_whose_identity_is_missing(bout: Bout, here: str) -> None:
    held = getattr(bout, here)
    other = bout.second if here == "first" else bout.first
    give(bout.root, "labels.agekey", held)
    with pytest.raises(IdentityMissing) as caught:
        bout.labels()
    message = str(caught.value)
    assert "takes 2 identities together, and 1 of them is here" in message
    assert f"missing is the identity of {other.recipient}" in message
    assert held.recipient not in message
    assert "labels-b.agekey" in message


def test_a_stranger_is_told_both(bout: Bout) -> None:
    give(bout.root, "labels.agekey", person())
    with pytest.raises(IdentityMissing, match="0 of them are here") as caught:
        bout.labels()
    assert f"{bout.first.recipient}; and of {bout.second.recipient}" in str(caught.value)


def test_both_together_open_whatever_their_files_are_called(bout: Bout) -> None:
    give(bout.root, "labels-z.agekey", bout.first)
    give(bout.root, "labels-b.agekey", bout.second)
    assert bout.labels().startswith(b'{"salt"')


@pytest.mark.skipif(shutil.which("age") is None, reason="missing: age")
def test_stock_age_twice_opens_and_once_does_not(bout: Bout, tmp_path: Path) -> None:
    (tmp_path / "first").write_bytes(bout.first.file)
    (tmp_path / "second").write_bytes(bout.second.file)
    sealed = bout.root / f"editions/{NAME}/labels/labels-v1.age"
    twice = f"age -d -i second {sealed} | age -d -i first | sha256sum"
    opened = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", twice], cwd=tmp_path, capture_output=True, check=True
    )
    commitment = find_commitment(NAME, "labels-v1", bout.tools.ledger)
    assert opened.stdout.split()[0].decode() == commitment.sha256
    for alone in ("first", "second"):
        command = f"age -d -i {alone} {sealed} | age -d -i {alone}"
        refused = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=tmp_path,
            capture_output=True,
            check=False,
        )
        assert refused.returncode != 0
        assert b"salt" not in refused.stdout


def test_any_of_several_opens(
    workspace_root: Path,
    sealing: SealingTools,
    sample: EditionFile,
    tools_at: Callable[[Path], SealingTools],
) -> None:
    people = [person() for _ in range(3)]
    plan = set_recipients(
        Purpose.LABELS,
        OpeningRule.ANY_OF,
        [one.recipient for one in people],
        tools=recipient_tools(workspace_root, sealing),
    )
    assert plan == any_of(*(one.recipient for one in people))
    tools = tools_at(workspace_root)
    seal_edition(sample, tools)
    bout = Bout(workspace_root, tools, people[0], people[1])
    for one in people:
        give(workspace_root, "labels.agekey", one)
        assert bout.labels().startswith(b'{"salt"')


def test_setting_one_purpose_leaves_the_other_alone(
    workspace_root: Path, sealing: SealingTools
) -> None:
    tools = recipient_tools(workspace_root, sealing)
    clips = tools.keyring.plan(Purpose.CLIPS)
    who = person().recipient
    set_recipients(Purpose.LABELS, OpeningRule.ANY_OF, [who], tools=tools)
    assert tools.keyring.plan(Purpose.CLIPS) == clips
    assert tools.keyring.plan(Purpose.LABELS) == any_of(who)


GOOD = person().recipient
SLIP = GOOD[:-1] + ("q" if GOOD[-1] != "q" else "p")


@pytest.mark.parametrize(
    ("rule", "recipients", "message"),
    [
        (OpeningRule.TWO_PERSON, [GOOD], "1, but two-person takes exactly 2"),
        (OpeningRule.TWO_PERSON, [GOOD, GOOD], "one stands twice"),
        (OpeningRule.ANY_OF, [], "recipients: 0, expected 1 to 16"),
        (OpeningRule.ANY_OF, [person().recipient for _ in range(17)], "recipients: 17"),
        (OpeningRule.ANY_OF, [GOOD, "age1short"], "age1short: not an age recipient"),
        (OpeningRule.ANY_OF, ["\x1b[31m"], r"x1b\[31m: not an age recipient"),
        (
            OpeningRule.ANY_OF,
            ["AGE-SECRET-KEY-1ABC"],
            "^recipients: one is a secret identity, [^1]*$",
        ),
        (OpeningRule.ANY_OF, [SLIP], "not an age recipient"),
    ],
)
def test_recipients_that_cannot_be_meant_change_nothing(
    workspace_root: Path,
    sealing: SealingTools,
    rule: OpeningRule,
    recipients: list[str],
    message: str,
) -> None:
    path = workspace_root / "keys/recipients.json"
    before = path.read_bytes()
    with pytest.raises(MalformedDocument, match=message):
        set_recipients(
            Purpose.CLIPS, rule, recipients, tools=recipient_tools(workspace_root, sealing)
        )
    assert path.read_bytes() == before
