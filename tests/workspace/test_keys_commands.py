"""keys, log and reveal, as typed."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.cli.main import main
from orchestrator.keys.age.age_files import generate_identity
from orchestrator.ledger.rules.keyset import ROLES
from orchestrator.wiring import workspaces as wiring
from tests.support.small_exams import new_workspace, seal_edition

EDITION = "exam-final"
CLOSED = ("2020-01-01", "2021-01-01")
OPEN = ("2020-01-01", "2099-01-01")
Piste = Callable[..., tuple[int, str, str]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    new_workspace(tmp_path / "workspace")
    return tmp_path / "workspace"


def seal(root: Path, dates: tuple[str, str]) -> Path:
    workspace = wiring.open_workspace(root)
    seal_edition(workspace, root.parent / "corpus", EDITION, stage="final", dates=dates)
    return root / "editions" / EDITION


@pytest.fixture
def piste(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Piste]:
    handlers = {name: signal.getsignal(name) for name in (signal.SIGTERM, signal.SIGHUP)}
    monkeypatch.delenv("PISTE_KEY_PASSPHRASE_FILE", raising=False)
    monkeypatch.setenv("COLUMNS", "240")
    monkeypatch.setenv("PISTE_WORKSPACE", str(root))

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["piste", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        code = ended.value.code
        return code if isinstance(code, int) else 0, captured.out, captured.err

    yield run
    for name, handler in handlers.items():
        signal.signal(name, handler)


def test_keys_alone_lists_them_as_keys_list_does(piste: Piste) -> None:
    code, out, err = piste("keys")
    assert (code, err) == (0, "")
    assert piste("keys", "list") == (code, out, err)
    rows = [line.split()[:5] for line in out.splitlines()]
    assert ["run", "ecdsa-p256", "0", "on", "yes"] in rows
    assert ["log", "ed25519", "0", "on", "yes"] in rows
    assert "labels of the next edition; identities here: labels.agekey" in out


def test_the_key_ids_shown_are_those_that_the_ledger_publishes(piste: Piste, root: Path) -> None:
    code, out, _ = piste("keys", "list", "--json")
    document = json.loads(out)
    keyset = wiring.open_workspace(root).ledger.keyset()
    assert code == 0
    assert {row["role"]: row["key_id"] for row in document["signing"]} == {
        role: keyset.current(role).key_id for role in ROLES
    }
    assert document["origin"] == keyset.origin
    assert document["log_verifier"].startswith(f"{keyset.origin}+")
    assert document["sealing"]["clips"]["identity_files"] == ["clips.agekey"]


def test_no_command_shows_a_private_key(piste: Piste, root: Path) -> None:
    shown = "".join(
        "".join(piste(*words)[1:])
        for words in (
            ("keys",),
            ("keys", "--json"),
            ("keys", "rotate", "run", "--reason", "yearly", "--json"),
        )
    )
    assert "PRIVATE" not in shown
    assert "SECRET" not in shown


def test_a_rotation_names_both_keys_and_says_what_to_do(piste: Piste, root: Path) -> None:
    code, out, _ = piste("keys", "rotate", "scorer", "--reason", "a laptop was lost", "--json")
    rotated = json.loads(out)
    assert (code, rotated["role"], rotated["sequence"]) == (0, "scorer", 1)
    assert (
        wiring.open_workspace(root).ledger.keyset().current("scorer").key_id
        == (rotated["new_key"]["key_id"])
    )
    code, out, _ = piste("keys", "rotate", "scorer", "--reason", "yearly")
    assert code == 0
    assert f"old {rotated['new_key']['key_id']}, its private half is destroyed" in out
    assert "Back up keys/scorer.pem" in out
    _, out, _ = piste("keys")
    assert [line.split()[2:6] for line in out.splitlines() if line.startswith("scorer")] == [
        ["0", "to", "1", "no"],
        ["2", "to", "2", "no"],
        ["3", "on", "yes", rotated_id(root)],
    ]


def rotated_id(root: Path) -> str:
    return wiring.open_workspace(root).ledger.keyset().current("scorer").key_id


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("keys", "rotate", "run"), 2, "--reason"),
        (("keys", "rotate", "clips", "--reason", "x"), 2, "clips"),
        (("keys", "rotate", "run", "--reason", " "), 2, "expected 1 to 500"),
        (("keys", "recipients", "set", "any-of", "age1"), 2, "--labels"),
        (("keys", "recipients", "set", "--labels", "one-of", "age1"), 2, "one-of"),
        (("keys", "recipients", "set", "--clips", "any-of", "age1"), 2, "age1: not an age"),
        (("keys", "recipients", "set", "--clips", "two-person", "age1"), 2, "takes exactly 2"),
        (("keys", "-w", "elsewhere", "list"), 2, "behind list, not before it"),
        (("keys", "--json", "recipients", "set"), 2, "behind recipients"),
        (("log", "consistency", "--from", "/nowhere"), 2, "/nowhere"),
        (("reveal", "nothing"), 3, "none is sealed yet"),
    ],
)
def test_words_that_cannot_be_meant_end_with_a_code_and_a_line(
    piste: Piste, words: tuple[str, ...], code: int, message: str
) -> None:
    ended, _, err = piste(*words)
    assert ended == code
    assert message in err
    assert "Traceback" not in err


def test_recipients_are_set_for_the_next_edition(piste: Piste) -> None:
    first, second = (generate_identity()[1] for _ in range(2))
    code, out, _ = piste("keys", "recipients", "set", "--labels", "two-person", first, second)
    assert (code, out.splitlines()[0]) == (0, "labels of the next edition:")
    document = json.loads(piste("keys", "--json")[1])
    assert document["sealing"]["labels"]["layers"] == [[first], [second]]
    words = ("keys", "recipients", "set", "--clips", "any-of", first, second, "--json")
    assert json.loads(piste(*words)[1]) == {"purpose": "clips", "layers": [[first, second]]}


def test_the_help_says_where_another_persons_identity_goes(piste: Piste) -> None:
    _, out, _ = piste("keys", "--help")
    assert "labels-b.agekey" in out


def test_the_checkpoint_is_printed_byte_for_byte_and_proven_later(
    piste: Piste, root: Path, tmp_path: Path
) -> None:
    code, note, _ = piste("log", "checkpoint")
    assert (code, note.encode()) == (0, wiring.open_workspace(root).ledger.checkpoint())
    kept = tmp_path / "kept"
    kept.write_text(note)
    piste("keys", "rotate", "log", "--reason", "yearly")
    piste("team", "add", "nova")
    code, out, _ = piste("log", "consistency", "--from", str(kept))
    assert (code, out.splitlines()[0]) == (0, "the log of 3 statements extends the one of 1")
    proven = json.loads(piste("log", "consistency", "--from", str(kept), "--json")[1])
    assert proven["checkpoint"] == piste("log", "checkpoint")[1]
    assert proven["newer"]["root"] == json.loads(piste("log", "checkpoint", "--json")[1])["root"]
    assert len(proven["proof"]) == len(out.splitlines()) - 1
    kept.write_text(note.replace("\n1\n", "\n2\n"))
    code, _, err = piste("log", "consistency", "--from", str(kept))
    assert code == 1
    assert "the signature is not by the log key" in err


def test_an_open_edition_is_not_revealed(piste: Piste, root: Path) -> None:
    folder = seal(root, OPEN)
    code, out, err = piste("reveal", EDITION)
    assert (code, out) == (3, "")
    assert "open until 2099" in err
    assert not (folder / "revealed").exists()


foreign = [tool for tool in ("sha256sum", "jq", "age", "tar") if shutil.which(tool) is None]

CHECK = """
sha256sum --strict -c listing
[ "$(jq -r .clip_set_sha256 seal.json)" = "$(sha256sum < revealed/clips.sha256 | cut -c 1-64)" ]
[ "$(jq -r '.labels[0].sha256' seal.json)" = \
  "$(sha256sum < revealed/labels-v1.jsonl | cut -c 1-64)" ]
mkdir opened
for file in sealed/*.age; do age -d -i ../../keys/clips.agekey "$file" | tar -x -C opened; done
cd opened && sha256sum --strict --quiet -c ../revealed/clips.sha256
"""


@pytest.mark.skipif(bool(foreign), reason=f"missing: {', '.join(foreign)}")
def test_what_reveal_prints_is_what_sha256sum_checks(piste: Piste, root: Path) -> None:
    folder = seal(root, CLOSED)
    code, out, err = piste("reveal", EDITION)
    assert code == 0
    assert "piste log checkpoint" in err
    (folder / "listing").write_text(out)
    checked = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", CHECK],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr
    assert checked.stdout.splitlines() == [
        "revealed/clips.sha256: OK",
        "revealed/labels-v1.jsonl: OK",
    ]


def test_reveal_happens_once_and_says_what_it_published(piste: Piste, root: Path) -> None:
    seal(root, CLOSED)
    code, out, _ = piste("reveal", EDITION, "--json")
    document = json.loads(out)
    assert (code, document["kind"], document["edition"]) == (0, "edition-revealed", EDITION)
    assert sorted(document["files"]) == ["revealed/clips.sha256", "revealed/labels-v1.jsonl"]
    code, _, err = piste("reveal", EDITION)
    assert code == 3
    assert "revealed already" in err


def test_init_with_a_passphrase_file_protects_what_it_makes(piste: Piste, tmp_path: Path) -> None:
    secret = tmp_path / "passphrase"
    secret.write_text("correct horse\n")
    words = ("init", str(tmp_path / "new"), "--passphrase-file", str(secret))
    secret.chmod(0o644)
    code, _, err = piste(*words)
    assert code == 4
    assert f"chmod 600 {secret}" in err
    assert not (tmp_path / "new").exists()
    secret.chmod(0o600)
    assert piste(*words)[0] == 0
    assert b"ENCRYPTED" in (tmp_path / "new/keys/run.pem").read_bytes()
    code, _, err = piste("keys", "-w", str(tmp_path / "new"))
    assert code == 4
    assert "PISTE_KEY_PASSPHRASE_FILE" in err
