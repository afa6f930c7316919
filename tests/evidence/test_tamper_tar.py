"""Hostile tars and folders: what is no plain file, and every byte that is not canonical."""

from __future__ import annotations

import io
import os
import socket
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from manifests.errors import MalformedDocument
from orchestrator.evidence.files.evidence_folder import EvidenceFolder
from orchestrator.evidence.files.evidence_source import open_evidence
from orchestrator.evidence.files.evidence_tar import EvidenceTar
from orchestrator.evidence.rules.catalogue import Check
from orchestrator.evidence.rules.findings import Result
from orchestrator.support.tar.deterministic_tar import tar_chunks, tar_header
from tests.support.bundle_edits import Files, pack, top_of, unpack
from tests.support.synthetic_evidence import EDITION, failed, shared_bundle, verify


@pytest.fixture(scope="module")
def bundle() -> Path:
    return shared_bundle()


@pytest.fixture(scope="module")
def files(bundle: Path) -> Files:
    return unpack(bundle)


def _with_member(files: Files, member: tarfile.TarInfo, data: bytes = b"") -> bytes:
    """Return a tar by Python's own writer with one member more."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(files):
            plain = tarfile.TarInfo(f"piste/{name}")
            plain.size = len(files[name])
            tar.addfile(plain, io.BytesIO(files[name]))
        tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def _member(name: str, kind: bytes, link: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, link
    return member


def _patched_header(files: Files, field: slice, value: bytes) -> bytes:
    """Change one field of the first header, its checksum made to fit again."""
    whole = bytearray(_canonical(files))
    whole[field] = value
    whole[148:156] = b" " * 8
    whole[148:156] = b"%06o\0 " % sum(whole[:512])
    return bytes(whole)


def _canonical(files: Files) -> bytes:
    members = ((f"piste/{name}", len(files[name]), (files[name],)) for name in sorted(files))
    return b"".join(tar_chunks(members))


def _in_order(*names: str) -> bytes:
    return b"".join(tar_header(name, 0) for name in names) + bytes(1024)


ODD: dict[str, Callable[[Files], bytes]] = {
    "a symbolic link": lambda f: _with_member(f, _member("piste/zz", tarfile.SYMTYPE, "/etc")),
    "a hard link": lambda f: _with_member(f, _member("piste/zz", tarfile.LNKTYPE, "piste/a")),
    "a device": lambda f: _with_member(f, _member("piste/zz", tarfile.CHRTYPE)),
    "a pipe": lambda f: _with_member(f, _member("piste/zz", tarfile.FIFOTYPE)),
    "a directory": lambda f: _with_member(f, _member("piste/zz", tarfile.DIRTYPE)),
    "a sparse file": lambda f: _with_member(f, _member("piste/zz", tarfile.GNUTYPE_SPARSE)),
    "an extended header": lambda f: _with_member(f, _member("piste/zz", tarfile.XHDTYPE)),
    "an absolute path": lambda f: _with_member(f, _member("/etc/passwd", tarfile.REGTYPE)),
    "a path that climbs out": lambda f: _with_member(f, _member("piste/../x", tarfile.REGTYPE)),
    "a name with a backslash": lambda f: _with_member(f, _member("piste/z\\z", tarfile.REGTYPE)),
    "a name with an escape": lambda f: _with_member(f, _member("piste/\x1b[2J", tarfile.REGTYPE)),
    "python's own tar": lambda f: _with_member(f, _member("piste/zz", tarfile.REGTYPE)),
    "a name twice": lambda _: _in_order("piste/a", "piste/a"),
    "names out of order": lambda _: _in_order("piste/b", "piste/a"),
    "two top folders": lambda _: _in_order("a/x", "b/x"),
    "no top folder": lambda _: _in_order("x"),
    "a size that is not there": lambda _: tar_header("piste/a", 8**11 - 1) + bytes(1024),
    "an empty tar": lambda _: bytes(1024),
    "nothing at all": lambda _: b"",
    "bytes behind the end": lambda f: _canonical(f) + bytes(512),
    "no end": lambda f: _canonical(f)[:-1024],
    "half an end": lambda f: _canonical(f)[:-512],
    "a cut in the middle": lambda f: _canonical(f)[: len(_canonical(f)) // 2],
    "another mode": lambda f: _patched_header(f, slice(100, 108), b"0004755\0"),
    "another owner": lambda f: _patched_header(f, slice(108, 116), b"0001750\0"),
    "a time": lambda f: _patched_header(f, slice(136, 148), b"15000000000\0"),
    "an owner's name": lambda f: _patched_header(f, slice(265, 269), b"root"),
    "a negative size": lambda f: _patched_header(f, slice(124, 136), b"\xff" * 12),
    "a size in base 256": lambda f: _patched_header(
        f, slice(124, 136), b"\x80" + bytes(10) + b"\x01"
    ),
    "a wrong checksum": lambda f: _canonical(f)[:148] + b"000000\0 " + _canonical(f)[156:],
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_no_canonical_tar_is_found_by_check_1(
    name: str, files: Files, tmp_path: Path
) -> None:
    path = tmp_path / "odd.tar"
    path.write_bytes(ODD[name](files))
    assert Check.TREE in failed(verify(path))


def test_no_check_but_the_first_runs_on_a_tar_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "odd.tar"
    path.write_bytes(b"x" * 2048)
    report = verify(path)
    assert failed(report) == {Check.TREE}
    assert {one.result for one in report.results} == {Result.FAILED, Result.SKIPPED}


def test_a_claimed_size_costs_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "bomb.tar"
    with path.open("wb") as file:
        file.write(tar_header("piste/log/entries.jsonl", 8**11 - 1))
        file.truncate(8 << 30)  # a sparse file: the disk holds nothing of it
    tree = EvidenceTar(path)
    assert tree.names == ()
    assert "claims 8589934591 bytes" in tree.faults[0]


def test_every_byte_of_the_tar_is_covered(bundle: Path, files: Files) -> None:
    members = (
        (f"{top_of(files)}/{name}", len(files[name]), (files[name],)) for name in sorted(files)
    )
    assert b"".join(tar_chunks(members)) == bundle.read_bytes()


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_no_mutation_of_a_bundle_passes(data: st.DataObject, bundle: Path, tmp_path: Path) -> None:
    whole = bundle.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    length = data.draw(st.sampled_from([0, 1, 1, 1, 2, 7, 512]))
    new = data.draw(st.binary(max_size=9))
    changed = whole[:at] + new + whole[at + length :]
    path = tmp_path / "mutated.tar"
    path.write_bytes(changed)
    if changed == whole:
        return
    assert failed(verify(path)), (at, length, new)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_no_exchange_of_two_pieces_of_a_bundle_passes(
    data: st.DataObject, bundle: Path, tmp_path: Path
) -> None:
    whole = bundle.read_bytes()
    blocks = len(whole) // 512
    one, other = data.draw(st.integers(0, blocks - 1)), data.draw(st.integers(0, blocks - 1))
    first, second = sorted((one * 512, other * 512))
    changed = (
        whole[:first]
        + whole[second : second + 512]
        + whole[first + 512 : second]
        + whole[first : first + 512]
        + whole[second + 512 :]
    )
    if changed[: len(whole)] == whole or first == second:
        return
    path = tmp_path / "mutated.tar"
    path.write_bytes(changed)
    assert failed(verify(path)), (first, second)


@pytest.fixture
def unpacked(files: Files, tmp_path: Path) -> Path:
    root = tmp_path / "unpacked"
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


def test_an_unpacked_bundle_holds_like_the_tar(unpacked: Path) -> None:
    assert failed(verify(unpacked)) == set()


def test_a_symbolic_link_in_a_folder_is_found_and_not_followed(unpacked: Path) -> None:
    target = unpacked / "CHECK.md"
    elsewhere = unpacked.parent / "elsewhere"
    target.rename(elsewhere)
    target.symlink_to(elsewhere)
    found = failed(verify(unpacked))
    assert {Check.TREE, Check.BUNDLE} <= found


def test_a_folder_that_is_a_link_is_not_entered(unpacked: Path) -> None:
    elsewhere = unpacked.parent / "elsewhere"
    (unpacked / "log").rename(elsewhere)
    (unpacked / "log").symlink_to(elsewhere)
    assert {Check.TREE, Check.STATEMENTS} <= failed(verify(unpacked))


def test_a_hard_link_in_a_folder_is_found(unpacked: Path) -> None:
    os.link(unpacked / "CHECK.md", unpacked.parent / "twin")
    assert Check.TREE in failed(verify(unpacked))


def test_a_pipe_in_a_folder_is_found_and_not_opened(unpacked: Path) -> None:
    os.mkfifo(unpacked / "pipe")
    assert failed(verify(unpacked)) == {Check.TREE}


def test_a_socket_in_a_folder_is_found(unpacked: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(unpacked / "socket"))
        assert failed(verify(unpacked)) == {Check.TREE}


def test_a_hidden_file_in_a_folder_is_found(unpacked: Path) -> None:
    (unpacked / "editions" / EDITION / ".hidden").write_bytes(b"x")
    assert {Check.BUNDLE, Check.SEAL} <= failed(verify(unpacked))


def test_a_name_that_is_not_plain_is_shown_harmlessly(unpacked: Path) -> None:
    (unpacked / "a\x1b[2Jb").write_bytes(b"x")
    tree = EvidenceFolder(unpacked)
    assert len(tree.faults) == 1
    assert "\x1b" not in tree.faults[0]


def test_a_file_that_became_a_link_after_listing_is_not_followed(unpacked: Path) -> None:
    tree = EvidenceFolder(unpacked)
    (unpacked / "CHECK.md").unlink()
    (unpacked / "CHECK.md").symlink_to("/etc/hostname")
    with pytest.raises(MalformedDocument, match="cannot be read"):
        list(tree.stream("CHECK.md"))


def test_a_path_that_is_no_evidence_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_bytes(b"hello\n")
    for path in (tmp_path, tmp_path / "notes.txt", tmp_path / "absent"):
        with pytest.raises(MalformedDocument):
            open_evidence(path)


def test_a_tar_cannot_hold_what_it_should_not() -> None:
    for name in ("/a", "a/../b", "a//b", "a b", "", "a/./b"):
        with pytest.raises(MalformedDocument):
            tar_header(name, 0)
    with pytest.raises(MalformedDocument):
        list(tar_chunks([("a/b", 3, (b"xx",))]))
    with pytest.raises(MalformedDocument):
        list(tar_chunks([("b/b", 0, ()), ("a/b", 0, ())]))


def test_a_packed_bundle_is_read_by_pythons_own_tar(files: Files, tmp_path: Path) -> None:
    long_name = "runs/" + "x" * 90 + "/" + "y" * 90
    path = pack({**files, long_name: b"data"}, tmp_path / "long.tar")
    with tarfile.open(path) as tar:
        names = tar.getnames()
        member = tar.extractfile(f"piste-bundle/{long_name}")
        assert member is not None
        assert member.read() == b"data"
    assert names == [f"piste-bundle/{name}" for name in sorted({*files, long_name})]
