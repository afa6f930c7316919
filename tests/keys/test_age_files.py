"""age files: any-of-several and two-person plans, foreign tools, and clear refusals."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests.errors import MalformedDocument, PlatformFault
from orchestrator.keys.age.age_files import (
    AgeKeyring,
    AgeSealer,
    AgeUnsealer,
    generate_identity,
    load_identities,
    parse_identities,
    protect_identity,
)
from orchestrator.keys.rules.recipients import (
    SealingPlan,
    SealRecipients,
    any_of,
    both_of,
    encode_recipients,
    parse_recipients,
)
from orchestrator.keys.sealing_port import (
    IdentityMissing,
    Purpose,
    SealedFileChanged,
    WrongIdentity,
)
from tests.support.light_identities import protect_lightly

needs_age = pytest.mark.skipif(shutil.which("age") is None, reason="the age program is missing")


class Person:
    def __init__(self) -> None:
        self.file, self.recipient = generate_identity()
        self.identities = parse_identities(self.file, source="memory")


@pytest.fixture(scope="module")
def alice() -> Person:
    return Person()


@pytest.fixture(scope="module")
def bob() -> Person:
    return Person()


@pytest.fixture(scope="module")
def eve() -> Person:
    return Person()


def seal(plain: bytes, plan: SealingPlan) -> bytes:
    return AgeSealer().seal(plain, plan)


def unseal(sealed: bytes, *people: Person, layers: int = 1) -> bytes:
    identities = [identity for person in people for identity in person.identities]
    return AgeUnsealer(identities).open_sealed(sealed, layers=layers, source="x.age")


@pytest.mark.parametrize("size", [0, 1, 65535, 65536, 65537, 200_000])
def test_what_was_sealed_opens_to_the_same_bytes(alice: Person, size: int) -> None:
    plain = os.urandom(size)
    assert unseal(seal(plain, any_of(alice.recipient)), alice) == plain


def test_any_one_of_several_recipients_opens(alice: Person, bob: Person, eve: Person) -> None:
    sealed = seal(b"clip", any_of(alice.recipient, bob.recipient))
    assert unseal(sealed, alice) == unseal(sealed, bob) == b"clip"
    with pytest.raises(WrongIdentity, match="none of the 1 identities"):
        unseal(sealed, eve)


def test_a_two_person_file_needs_both(alice: Person, bob: Person) -> None:
    sealed = seal(b"labels", both_of(alice.recipient, bob.recipient))
    assert unseal(sealed, alice, bob, layers=2) == b"labels"
    for alone in (alice, bob):
        with pytest.raises(WrongIdentity):
            unseal(sealed, alone, layers=2)


@needs_age
def test_the_age_program_opens_a_two_person_file_from_the_outside_in(
    alice: Person, bob: Person, tmp_path: Path
) -> None:
    for person, name in ((alice, "a"), (bob, "b")):
        (tmp_path / name).write_bytes(person.file)
    (tmp_path / "x.age").write_bytes(seal(b"labels", both_of(alice.recipient, bob.recipient)))
    command = "age -d -i b x.age | age -d -i a"
    opened = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, check=True)
    assert opened.stdout == b"labels"


@needs_age
def test_what_the_age_program_seals_opens_here(alice: Person) -> None:
    command = ["age", "-r", alice.recipient]
    sealed = subprocess.run(command, input=b"foreign", capture_output=True, check=True).stdout
    assert unseal(sealed, alice) == b"foreign"


@pytest.mark.skipif(shutil.which("age-keygen") is None, reason="age-keygen is missing")
def test_an_identity_of_age_keygen_is_read_and_ours_is_read_by_it(
    alice: Person, tmp_path: Path
) -> None:
    made = subprocess.run(["age-keygen"], capture_output=True, check=True).stdout
    assert len(parse_identities(made, source="keygen")) == 1
    (tmp_path / "ours").write_bytes(alice.file)
    shown = subprocess.run(
        ["age-keygen", "-y", "ours"], cwd=tmp_path, capture_output=True, check=True, text=True
    )
    assert shown.stdout.strip() == alice.recipient


@settings(max_examples=40, deadline=None)
@given(position=st.integers(0, 2**20), bit=st.integers(0, 7))
def test_no_changed_bit_opens(alice: Person, position: int, bit: int) -> None:
    sealed = bytearray(seal(b"z" * 70_000, any_of(alice.recipient)))
    sealed[position % len(sealed)] ^= 1 << bit
    with pytest.raises((SealedFileChanged, WrongIdentity), match=r"x\.age"):
        unseal(bytes(sealed), alice)


@settings(max_examples=40, deadline=None)
@given(cut=st.integers(1, 2**20))
def test_no_file_that_was_cut_opens(alice: Person, cut: int) -> None:
    sealed = seal(b"z" * 70_000, any_of(alice.recipient))
    with pytest.raises(SealedFileChanged, match="cut short"):
        unseal(sealed[: -(cut % len(sealed) + 1)], alice)


def test_a_file_cut_at_a_chunk_is_called_cut_short(alice: Person) -> None:
    sealed = seal(b"z" * (3 * 65536), any_of(alice.recipient))
    with pytest.raises(SealedFileChanged, match=r"^x\.age: cut short"):
        unseal(sealed[: -(65536 + 16)], alice)


def test_an_identity_that_others_may_read_is_refused(alice: Person, tmp_path: Path) -> None:
    path = tmp_path / "clips.agekey"
    path.write_bytes(alice.file)
    path.chmod(0o640)
    with pytest.raises(PlatformFault, match=r"mode 0640 .* chmod 600"):
        load_identities(path, None)


def test_an_identity_behind_a_link_is_refused(alice: Person, tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(alice.file)
    (tmp_path / "real").chmod(0o600)
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(PlatformFault, match="symbolic link"):
        load_identities(tmp_path / "link", None)


def test_a_protected_identity_opens_with_its_passphrase_only(alice: Person, tmp_path: Path) -> None:
    path = tmp_path / "clips.agekey"
    path.write_bytes(protect_identity(alice.file, "correct horse"))
    path.chmod(0o600)
    assert load_identities(path, lambda _: ["correct horse"])
    path.write_bytes(protect_lightly(alice.file, "correct horse"))
    assert load_identities(path, lambda _: ["wrong", "correct horse"])
    with pytest.raises(WrongIdentity, match="passphrase"):
        load_identities(path, lambda _: ["wrong"])
    with pytest.raises(PlatformFault, match="nobody is there to ask"):
        load_identities(path, None)


def test_a_broken_identity_is_named_by_line_and_never_shown() -> None:
    with pytest.raises(MalformedDocument, match="line 2") as caught:
        parse_identities(b"# mine\nAGE-SECRET-KEY-1BROKEN\n", source="clips.agekey")
    assert "BROKEN" not in str(caught.value)
    with pytest.raises(MalformedDocument, match="no age identity"):
        parse_identities(b"# nothing\n", source="clips.agekey")


def test_a_host_without_label_identity_says_so_and_still_knows_the_recipients(
    alice: Person, bob: Person, tmp_path: Path
) -> None:
    recipients = SealRecipients(clips=any_of(alice.recipient), labels=any_of(bob.recipient))
    (tmp_path / "recipients.json").write_bytes(encode_recipients(recipients))
    (tmp_path / "clips.agekey").write_bytes(alice.file)
    (tmp_path / "clips.agekey").chmod(0o600)
    keyring = AgeKeyring(tmp_path)
    assert keyring.holds(Purpose.CLIPS)
    assert not keyring.holds(Purpose.LABELS)
    assert keyring.plan(Purpose.LABELS) == any_of(bob.recipient)
    with pytest.raises(IdentityMissing, match=r"labels\.agekey"):
        keyring.unsealer(Purpose.LABELS)


def test_a_second_identity_file_serves_a_two_person_plan(
    alice: Person, bob: Person, tmp_path: Path
) -> None:
    for person, name in ((alice, "labels.agekey"), (bob, "labels-second.agekey")):
        (tmp_path / name).write_bytes(person.file)
        (tmp_path / name).chmod(0o600)
    sealed = seal(b"labels", both_of(alice.recipient, bob.recipient))
    unsealer = AgeKeyring(tmp_path).unsealer(Purpose.LABELS)
    assert unsealer.open_sealed(sealed, layers=2, source="x") == b"labels"


@pytest.mark.parametrize(
    "document",
    [
        b"{}",
        b'{"clips":{"layers":[]},"labels":{"layers":[]}}',
        b'{"clips":{"layers":[["age1short"]]},"labels":{"layers":[["age1short"]]}}',
        b'{"clips":1,"clips":1}',
    ],
)
def test_recipients_that_cannot_be_used_are_refused(document: bytes) -> None:
    with pytest.raises(MalformedDocument, match=r"recipients\.json"):
        parse_recipients(document, source="recipients.json")
