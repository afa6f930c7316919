"""One passphrase protects every private key: from a file, or asked for without an echo."""

from __future__ import annotations

import getpass
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from manifests.errors import MalformedDocument, PlatformFault
from orchestrator.keys.age.age_files import (
    AgeKeyring,
    AgeSealer,
    generate_identity,
    protect_identity,
)
from orchestrator.keys.files.passphrases import Passphrases, choose_passphrase, read_passphrase
from orchestrator.keys.rules.recipients import any_of
from orchestrator.keys.sealing_port import Purpose, WrongIdentity
from orchestrator.wiring import workspaces as wiring
from orchestrator.wiring.keys import SECRET_FILE_VARIABLE, new_passphrase, rotate
from orchestrator.wiring.workspaces import create_workspace, open_workspace
from tests.support.light_identities import protect_lightly
from tests.support.synthetic_ledger import team_registered

SECRET = "correct horse"
Answer = Callable[..., list[str]]


@pytest.fixture(scope="module")
def protected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace as `piste init` makes it, but its identities' passphrase is quick to try."""
    root = tmp_path_factory.mktemp("protected") / "w"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wiring, "protect_identity", protect_lightly)
        create_workspace(root, origin="example.org/piste", passphrase=SECRET)
    return root


@pytest.fixture
def root(protected: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(SECRET_FILE_VARIABLE, raising=False)
    return Path(shutil.copytree(protected, tmp_path / "w"))


def passphrase_file(folder: Path, text: str = f"{SECRET}\n", *, mode: int = 0o600) -> Path:
    path = folder / "passphrase"
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.fixture
def at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> Answer:
    """Let a person enter these answers; return the list of what they were asked."""

    def answer(*answers: str) -> list[str]:
        asked: list[str] = []
        left = iter(answers)

        def ask(prompt: str = "") -> str:
            asked.append(prompt)
            return next(left)

        monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
        monkeypatch.setattr(getpass, "getpass", ask)
        return asked

    return answer


def test_every_private_key_is_encrypted_and_of_mode_0600(root: Path) -> None:
    files = [path for path in (root / "keys").iterdir() if path.name != "recipients.json"]
    assert len(files) == 5
    for path in files:
        assert path.stat().st_mode & 0o777 == 0o600
        assert b"ENCRYPTED PRIVATE KEY" in path.read_bytes() or path.read_bytes().startswith(
            b"age-encryption.org/v1\n-> scrypt"
        )


def test_the_file_that_the_environment_names_opens_everything(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SECRET_FILE_VARIABLE, str(passphrase_file(tmp_path)))
    workspace = open_workspace(root)
    workspace.ledger.append(team_registered())
    sealed = workspace.sealer.seal(b"sign", workspace.keyring.plan(Purpose.LABELS))
    unsealer = workspace.keyring.unsealer(Purpose.LABELS)
    assert unsealer.open_sealed(sealed, layers=1, source="x") == b"sign"


def test_without_file_and_terminal_the_way_out_is_named(root: Path) -> None:
    with pytest.raises(PlatformFault, match="0600 and name that file in PISTE_KEY_P"):
        open_workspace(root)


def test_a_person_is_asked_once_for_all_keys(root: Path, at_a_terminal: Answer) -> None:
    asked = at_a_terminal(SECRET)
    workspace = open_workspace(root)
    workspace.keyring.unsealer(Purpose.CLIPS)
    assert asked == [f"Passphrase of {root / 'keys'}: "]


def test_a_slip_may_be_made_twice_and_not_three_times(root: Path, at_a_terminal: Answer) -> None:
    at_a_terminal("slip", "another", SECRET)
    assert open_workspace(root).ledger.size() == 1
    at_a_terminal("slip", "another", "third", SECRET)
    with pytest.raises(MalformedDocument, match="wrong passphrase"):
        open_workspace(root)


def test_what_was_entered_is_tried_on_other_files_before_a_person_is_asked_again(
    at_a_terminal: Answer,
) -> None:
    asked = at_a_terminal(SECRET, "other person")
    source = Passphrases(None, variable="X")
    assert next(source.attempts("keys")) == SECRET
    attempts = source.attempts("labels-b.agekey")
    assert next(attempts) == SECRET
    assert len(asked) == 1
    assert next(attempts) == "other person"
    assert asked[1] == "Passphrase of labels-b.agekey: "


def test_a_person_may_enter_what_the_file_does_not_open(
    tmp_path: Path, at_a_terminal: Answer
) -> None:
    source = Passphrases(passphrase_file(tmp_path), variable="X")
    at_a_terminal("other person")
    attempts = source.attempts("labels-b.agekey")
    assert [next(attempts), next(attempts)] == [SECRET, "other person"]


def test_a_rotated_key_keeps_the_passphrase(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SECRET_FILE_VARIABLE, str(passphrase_file(tmp_path)))
    rotated = rotate(root, "run", reason="yearly")
    assert b"ENCRYPTED PRIVATE KEY" in (root / "keys/run.pem").read_bytes()
    assert open_workspace(root).signing.signer("run").public_key == rotated.new


def test_a_wrong_file_opens_nothing(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = passphrase_file(tmp_path, "something else")
    monkeypatch.setenv(SECRET_FILE_VARIABLE, str(wrong))
    with pytest.raises(MalformedDocument, match="wrong passphrase"):
        open_workspace(root)
    keyring = AgeKeyring(root / "keys", ask=Passphrases(wrong, variable="X").attempts)
    with pytest.raises(WrongIdentity, match="the passphrase does not open it"):
        keyring.unsealer(Purpose.CLIPS)


def test_keys_without_passphrase_are_not_taken_for_protected_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_workspace(tmp_path / "plain", origin="example.org/plain")
    monkeypatch.setenv(SECRET_FILE_VARIABLE, str(passphrase_file(tmp_path)))
    with pytest.raises(MalformedDocument, match="a passphrase was given and the key has none"):
        open_workspace(tmp_path / "plain")


@pytest.mark.parametrize("text", ["", "\n", "one\ntwo\n"])
def test_a_passphrase_file_holds_one_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(MalformedDocument, match="expected one with the passphrase"):
        read_passphrase(passphrase_file(tmp_path, text))


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644])
def test_a_passphrase_file_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(PlatformFault, match=f"mode 0{mode:o} .* chmod 600"):
        read_passphrase(passphrase_file(tmp_path, mode=mode))


def test_a_new_passphrase_is_entered_twice_and_long_enough(at_a_terminal: Answer) -> None:
    at_a_terminal(SECRET, SECRET)
    assert choose_passphrase() == SECRET
    at_a_terminal(SECRET, SECRET.upper())
    with pytest.raises(MalformedDocument, match="the two passphrases differ"):
        choose_passphrase()
    at_a_terminal("seven77", "seven77")
    with pytest.raises(MalformedDocument, match="7 characters, expected at least 8") as caught:
        choose_passphrase()
    assert "seven77" not in str(caught.value)


def test_one_way_to_give_a_passphrase_is_enough(tmp_path: Path) -> None:
    with pytest.raises(MalformedDocument, match="not both"):
        new_passphrase(passphrase_file(tmp_path), ask=True)
    assert new_passphrase(passphrase_file(tmp_path), ask=False) == SECRET


def test_nothing_is_read_from_a_pipe_as_if_it_were_a_person(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    with pytest.raises(PlatformFault, match="nobody is at a terminal"):
        choose_passphrase()


PROMPTED = """
import sys
from pathlib import Path
from orchestrator.wiring.workspaces import open_workspace
workspace = open_workspace(Path(sys.argv[1]))
print("opened", workspace.ledger.size())
"""


def on_a_terminal(command: list[str], typed: str) -> tuple[int, str]:
    """Run a command whose controlling terminal is a new one; return its code and what it showed."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        ["setsid", "--ctty", "--wait", *command], stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        shown = b""
        while b"assphrase" not in shown:
            shown += os.read(ours, 1024)
        os.write(ours, f"{typed}\n".encode())
        while True:
            try:
                data = os.read(ours, 1024)
            except OSError:
                break  # Linux says EIO when the other side is closed
            if not data:
                break
            shown += data
        code = process.wait(timeout=30)
    os.close(ours)
    return code, shown.decode()


@pytest.mark.skipif(shutil.which("setsid") is None, reason="missing: setsid")
def test_the_terminal_never_shows_what_is_entered(root: Path) -> None:
    code, shown = on_a_terminal([sys.executable, "-c", PROMPTED, str(root)], SECRET)
    assert (code, "opened 1" in shown) == (0, True)
    assert SECRET not in shown


@pytest.mark.skipif(
    not all(shutil.which(tool) for tool in ("age", "setsid")), reason="missing: age or setsid"
)
def test_stock_age_opens_with_the_protected_identity_file(tmp_path: Path) -> None:
    """With the work that the product puts into it, unlike the others here."""
    plain, recipient = generate_identity()
    identity, sealed, out = (tmp_path / name for name in ("clips.agekey", "x.age", "opened"))
    identity.write_bytes(protect_identity(plain, SECRET))
    sealed.write_bytes(AgeSealer().seal(b"en garde", any_of(recipient)))
    command = ["age", "-d", "-i", str(identity), "-o", str(out), str(sealed)]
    code, shown = on_a_terminal(command, SECRET)
    assert code == 0, shown
    assert out.read_bytes() == b"en garde"
