"""Private key files: 0600, all or none, and refused when others could read them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from manifests.errors import ClaimDoesNotHold, MalformedDocument, PlatformFault, RefusedByPolicy
from orchestrator.keys.pem.signing_keys import (
    create_key_file,
    create_signing_keys,
    load_signer,
    load_signing_keys,
    next_key_path,
    promote_next_key,
)
from orchestrator.keys.rules.signatures import verify_signature


def test_keys_are_created_private_and_load_as_the_same_keys(tmp_path: Path) -> None:
    created = create_signing_keys(tmp_path / "keys")
    files = sorted((tmp_path / "keys").iterdir())
    assert [file.name for file in files] == ["log.pem", "run.pem", "scorer.pem"]
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o700
    assert load_signing_keys(tmp_path / "keys").held() == created.held()
    assert [item.name for item in tmp_path.iterdir()] == ["keys"]


def test_the_key_id_is_what_openssl_says_of_the_public_key(tmp_path: Path) -> None:
    keys = create_signing_keys(tmp_path / "keys")
    for published in keys.held():
        recipe = f"openssl pkey -in keys/{published.role}.pem -pubout -outform DER | sha256sum"
        answer = subprocess.run(
            ["bash", "-euc", recipe], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert answer.stdout.split()[0] == published.key_id


def test_a_detached_signature_is_one_that_openssl_verifies(tmp_path: Path) -> None:
    signer = create_key_file(tmp_path / "run.pem", "run")
    (tmp_path / "run.pub").write_text(signer.public_key.pem)
    (tmp_path / "SHA256SUMS").write_bytes(b"sums\n")
    (tmp_path / "sig").write_bytes(signer.sign(b"sums\n"))
    command = "openssl dgst -sha256 -verify run.pub -signature sig SHA256SUMS"
    answer = subprocess.run(
        command.split(), cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (answer.returncode, answer.stdout) == (0, "Verified OK\n")


@pytest.mark.parametrize("role", ["run", "scorer", "log"])
def test_every_role_signs_what_its_public_key_verifies(tmp_path: Path, role: str) -> None:
    signer = getattr(create_signing_keys(tmp_path / "keys"), role)
    signature = signer.sign(b"message")
    verify_signature(signer.public_key, message=b"message", signature=signature, source="x")
    with pytest.raises(ClaimDoesNotHold, match=f"not by the {role} key"):
        verify_signature(signer.public_key, message=b"massage", signature=signature, source="x")


def test_an_absent_file_is_a_key_that_this_host_does_not_hold(tmp_path: Path) -> None:
    create_signing_keys(tmp_path / "keys")
    (tmp_path / "keys" / "scorer.pem").unlink()
    keys = load_signing_keys(tmp_path / "keys")
    assert [published.role for published in keys.held()] == ["run", "log"]
    with pytest.raises(RefusedByPolicy, match="holds no scorer key"):
        keys.signer("scorer")


def test_a_folder_without_keys_says_how_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(PlatformFault, match="piste init"):
        load_signing_keys(tmp_path)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o601])
def test_a_key_that_others_may_touch_is_refused_with_the_remedy(tmp_path: Path, mode: int) -> None:
    create_signing_keys(tmp_path / "keys")
    path = tmp_path / "keys" / "run.pem"
    path.chmod(mode)
    with pytest.raises(PlatformFault, match=f"mode 0{mode:o}.*chmod 600 {path}"):
        load_signing_keys(tmp_path / "keys")


def test_a_key_behind_a_link_or_of_another_kind_is_refused(tmp_path: Path) -> None:
    create_signing_keys(tmp_path / "keys")
    (tmp_path / "run.pem").symlink_to(tmp_path / "keys" / "run.pem")
    with pytest.raises(PlatformFault, match="cannot be read"):
        load_signer(tmp_path / "run.pem", "run")
    os.mkfifo(tmp_path / "pipe.pem", 0o600)
    with pytest.raises(PlatformFault, match="not a regular file"):
        load_signer(tmp_path / "pipe.pem", "run")


def test_a_passphrase_is_needed_and_has_to_be_the_right_one(tmp_path: Path) -> None:
    created = create_signing_keys(tmp_path / "keys", passphrase=b"en garde")
    path = tmp_path / "keys" / "run.pem"
    assert b"ENCRYPTED" in path.read_bytes()
    assert load_signing_keys(tmp_path / "keys", passphrase=b"en garde").held() == created.held()
    with pytest.raises(MalformedDocument, match="has a passphrase and none was given"):
        load_signer(path, "run")
    with pytest.raises(MalformedDocument, match="wrong passphrase"):
        load_signer(path, "run", passphrase=b"touche")
    plain = create_key_file(tmp_path / "plain.pem", "run")
    with pytest.raises(MalformedDocument, match="the key has none"):
        load_signer(tmp_path / "plain.pem", plain.public_key.role, passphrase=b"en garde")


@pytest.mark.parametrize("content", [b"", b"not a key", b"\xff" * 100])
def test_a_file_that_is_no_key_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "run.pem"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(MalformedDocument, match="not a PEM private key"):
        load_signer(path, "run")


@pytest.mark.parametrize("command", ["genrsa 2048", "ecparam -name secp384r1 -genkey -noout"])
def test_a_key_of_another_algorithm_is_refused(tmp_path: Path, command: str) -> None:
    path = tmp_path / "run.pem"
    made = subprocess.run(["openssl", *command.split()], capture_output=True, check=True)
    path.write_bytes(made.stdout)
    path.chmod(0o600)
    with pytest.raises(MalformedDocument, match="P-256"):
        load_signer(path, "run")


def test_a_log_key_in_the_run_keys_place_is_refused(tmp_path: Path) -> None:
    create_key_file(tmp_path / "log.pem", "log")
    with pytest.raises(MalformedDocument, match="a run key is ECDSA P-256"):
        load_signer(tmp_path / "log.pem", "run")


def test_keys_are_never_overwritten(tmp_path: Path) -> None:
    create_signing_keys(tmp_path / "keys")
    before = (tmp_path / "keys" / "run.pem").read_bytes()
    with pytest.raises(RefusedByPolicy, match="never overwritten"):
        create_signing_keys(tmp_path / "keys")
    with pytest.raises(RefusedByPolicy, match="never overwritten"):
        create_key_file(tmp_path / "keys" / "run.pem", "run")
    assert (tmp_path / "keys" / "run.pem").read_bytes() == before


@pytest.mark.parametrize("written", [0, 1, 2])
def test_a_failure_in_mid_way_leaves_no_key_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    real, left = os.fsync, iter([True] * written)

    def fail(descriptor: int) -> None:
        if not next(left, False):
            raise OSError(28, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(PlatformFault, match="No space left on device"):
        create_signing_keys(tmp_path / "keys")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(PlatformFault, match="No space left on device"):
        create_key_file(tmp_path / "next.pem", "run")
    assert list(tmp_path.iterdir()) == []


def test_a_rotation_prepares_the_next_key_and_then_puts_it_in_place(tmp_path: Path) -> None:
    before = create_signing_keys(tmp_path / "keys")
    prepared = create_key_file(next_key_path(tmp_path / "keys", "run"), "run")
    assert load_signing_keys(tmp_path / "keys").held() == before.held()
    for _ in range(2):
        promote_next_key(tmp_path / "keys", "run")
        assert load_signing_keys(tmp_path / "keys").held()[0] == prepared.public_key
    names = sorted(item.name for item in (tmp_path / "keys").iterdir())
    assert names == ["log.pem", "run.pem", "scorer.pem"]


def test_the_private_half_never_shows(tmp_path: Path) -> None:
    keys = create_signing_keys(tmp_path / "keys")
    shown = repr(keys)
    assert "PRIVATE" not in shown
    assert "object at" not in shown
