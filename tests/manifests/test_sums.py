"""Sums are what `sha256sum` writes and checks, and nothing else."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests.errors import MalformedDocument
from manifests.sums import parse_sums, render_sums

A, B, SALT = "a" * 64, "b" * 64, "5" * 64


def test_the_file_is_sorted_bytewise_behind_its_salt() -> None:
    data = render_sums({"keypoints/0001.npy": A, "annotations/0001.json": B, "Z": A}, salt=SALT)
    assert data.decode().splitlines() == [
        f"# salt: {SALT}",
        f"{A}  Z",
        f"{B}  annotations/0001.json",
        f"{A}  keypoints/0001.npy",
    ]


def test_sha256sum_checks_what_we_write_with_and_without_a_salt(tmp_path: Path) -> None:
    program = shutil.which("sha256sum")
    if program is None:
        pytest.skip("sha256sum is not installed")
    (tmp_path / "keypoints").mkdir()
    names = ["keypoints/0001.npy", "run.json"]
    for name in names:
        (tmp_path / name).write_bytes(name.encode())
    digests = {name: hashlib.sha256(name.encode()).hexdigest() for name in names}
    for salt in (None, SALT):
        (tmp_path / "sums").write_bytes(render_sums(digests, salt=salt))
        checked = subprocess.run(
            [program, "-c", "sums"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert checked.returncode == 0, checked.stderr
        assert checked.stdout.splitlines() == [f"{name}: OK" for name in names]


def test_we_read_what_sha256sum_writes(tmp_path: Path) -> None:
    program = shutil.which("sha256sum")
    if program is None:
        pytest.skip("sha256sum is not installed")
    (tmp_path / "a.npy").write_bytes(b"a")
    (tmp_path / "b.npy").write_bytes(b"b")
    written = subprocess.run(
        [program, "a.npy", "b.npy"], cwd=tmp_path, capture_output=True, check=True
    ).stdout
    assert parse_sums(written, source="s").by_name() == {
        "a.npy": hashlib.sha256(b"a").hexdigest(),
        "b.npy": hashlib.sha256(b"b").hexdigest(),
    }


@pytest.mark.parametrize(
    ("data", "fact"),
    [
        (f"{A}  a", "the last line has no end"),
        (f"{A} a\n", "s:1: "),
        (f"{A} *a\n", "s:1: "),
        (f"{A.upper()}  a\n", "s:1: "),
        (f"{A[:63]}  a\n", "s:1: "),
        (f"{A}  a b\n", "s:1: "),
        (f"{A}  \n", "s:1: "),
        (f"\\{A}  a\n", "s:1: "),
        (f"{A}  a\r\n", "s:1: "),
        (f"{A}  ../a\n", "not a plain relative path"),
        (f"{A}  a/../b\n", "not a plain relative path"),
        (f"{A}  /etc/passwd\n", "not a plain relative path"),
        (f"{A}  a//b\n", "not a plain relative path"),
        (f"{A}  ./a\n", "not a plain relative path"),
        (f"{A}  a/\n", "not a plain relative path"),
        (f"{A}  -a\n", "not a plain relative path"),
        (f"{A}  a\n{B}  a\n", "s:2: a stands twice or out of order"),
        (f"{A}  b\n{B}  a\n", "s:2: a stands twice or out of order"),
        (f"# salt: {SALT}\n{A}  a\n", "s:1: "),
        (f"{A}  a\n\n", "s:2: "),
        (f"{A}  é\n", "s:1: not ASCII"),
    ],
)
def test_every_deviation_is_refused_with_its_line(data: str, fact: str) -> None:
    with pytest.raises(MalformedDocument) as caught:
        parse_sums(data.encode(), source="s")
    assert fact in str(caught.value)


@pytest.mark.parametrize("first", ["", "# salt: 5\n", f"#salt: {SALT}\n", f"# salt: {SALT} \n"])
def test_a_salted_file_needs_its_salt(first: str) -> None:
    with pytest.raises(MalformedDocument, match="s:1: expected `# salt: ` and 64 hex digits"):
        parse_sums(f"{first}{A}  a\n".encode(), source="s", salted=True)


@pytest.mark.parametrize(
    ("name", "digest", "salt"),
    [("../a", A, None), ("a b", A, None), ("", A, None), ("a", "x", None), ("a", A, "x")],
)
def test_what_the_format_cannot_carry_is_not_written(
    name: str, digest: str, salt: str | None
) -> None:
    with pytest.raises(MalformedDocument):
        render_sums({name: digest}, salt=salt)


HEX = st.from_regex(r"[0-9a-f]{64}", fullmatch=True)
NAME = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,6}(/[A-Za-z0-9_-]{1,6}\.npy)?", fullmatch=True)


@settings(max_examples=80, deadline=None)
@given(st.dictionaries(NAME, HEX, max_size=6), st.none() | HEX)
def test_what_is_rendered_is_parsed_back(digests: dict[str, str], salt: str | None) -> None:
    data = render_sums(digests, salt=salt)
    sums = parse_sums(data, source="s", salted=salt is not None)
    assert (sums.by_name(), sums.salt) == (digests, salt)


@settings(max_examples=100, deadline=None)
@given(st.binary(min_size=1, max_size=200), st.booleans())
def test_arbitrary_bytes_raise_nothing_but_malformed_document(data: bytes, salted: bool) -> None:
    with pytest.raises(MalformedDocument):
        parse_sums(data, source="s", salted=salted)
