"""What the collector takes out of a hostile tar, and what it never does."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests.outcomes import Diagnostic
from orchestrator.sandbox.rules.collector import (
    CollectedFiles,
    OutputRules,
    OutputViolation,
    collect_output,
    hash_tree,
)
from orchestrator.support.tar.tar_stream import TarError

RULES = OutputRules(total_bytes=5000, file_bytes=4000, files=3)
POSES = OutputRules(total_bytes=5000, file_bytes=4000, files=3, allow_pose=True)


def member(name: str, data: bytes = b"", kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.size, made.type, made.mode = len(data), kind, 0o4777
    return made


def tar_of(*members: tuple[str, bytes, bytes], layout: int = tarfile.PAX_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(
        fileobj=buffer, mode="w", format=layout, encoding="utf-8", errors="surrogateescape"
    ) as tar:
        tar.addfile(member("output/", kind=tarfile.DIRTYPE))
        for name, data, kind in members:
            made = member(name, data, kind)
            made.linkname = "/etc/passwd" if kind in {tarfile.SYMTYPE, tarfile.LNKTYPE} else ""
            tar.addfile(made, io.BytesIO(data))
    return buffer.getvalue()


def file(name: str, data: bytes = b"x") -> tuple[str, bytes, bytes]:
    return (f"output/{name}", data, tarfile.REGTYPE)


def violation(*members: tuple[str, bytes, bytes], rules: OutputRules = RULES) -> Diagnostic:
    result = collect_output([tar_of(*members)], rules)
    assert isinstance(result, OutputViolation), result
    return result.diagnostic


def test_plain_files_are_collected_with_their_bytes_alone() -> None:
    archive = tar_of(file("predictions.jsonl", b"a" * 1000), file("log.txt", b""))
    assert collect_output([archive], RULES) == CollectedFiles(
        {"predictions.jsonl": b"a" * 1000, "log.txt": b""}
    )


def test_an_empty_folder_is_no_violation() -> None:
    assert collect_output([tar_of()], RULES) == CollectedFiles({})


@pytest.mark.parametrize("layout", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_every_tar_format_is_read(layout: int) -> None:
    archive = tar_of(file("a" * 60, b"1"), file("b", b"2"), layout=layout)
    assert collect_output([archive], RULES) == CollectedFiles({"a" * 60: b"1", "b": b"2"})


@given(st.integers(1, 1500), st.binary(max_size=3000))
@settings(max_examples=30, deadline=None)
def test_chunk_borders_do_not_matter(step: int, data: bytes) -> None:
    archive = tar_of(file("a", data), file("b", b"y"))
    chunks = [archive[at : at + step] for at in range(0, len(archive), step)]
    assert collect_output(chunks, RULES) == CollectedFiles({"a": data, "b": b"y"})


@pytest.mark.parametrize(
    "kind",
    [
        tarfile.SYMTYPE,
        tarfile.LNKTYPE,
        tarfile.FIFOTYPE,
        tarfile.CHRTYPE,
        tarfile.BLKTYPE,
        tarfile.DIRTYPE,
        tarfile.CONTTYPE + b"",
        b"S",
        b"Z",
    ],
)
def test_only_plain_files_are_accepted(kind: bytes) -> None:
    if kind == tarfile.CONTTYPE:  # an old spelling of a plain file
        assert isinstance(collect_output([tar_of(("output/x", b"", kind))], RULES), CollectedFiles)
    else:
        assert violation(("output/x", b"", kind)) is Diagnostic.OUTPUT_KIND


@pytest.mark.parametrize(
    "name",
    [
        "a b",
        "..",
        ".",
        "a/b",
        "new\nline",
        "\x1b[2J",
        "ü",
        "bad\udcff",
        "x" * 65,
        "../../etc/passwd",
        "pose/0001.npy",
        "a\\b",
        "-" * 65,
    ],
)
def test_odd_names_are_refused(name: str) -> None:
    assert violation(file(name)) is Diagnostic.OUTPUT_NAME


@pytest.mark.parametrize("name", ["/etc/passwd", "elsewhere/x", "outputs/x"])
def test_names_outside_the_folder_are_refused(name: str) -> None:
    assert violation((name, b"", tarfile.REGTYPE)) is Diagnostic.OUTPUT_KIND


def test_names_are_taken_once() -> None:
    assert violation(file("a"), file("a")) is Diagnostic.OUTPUT_NAME


def test_poses_are_accepted_where_the_track_has_them() -> None:
    pose = ("output/pose", b"", tarfile.DIRTYPE)
    archive = tar_of(pose, file("pose/0001.npy", b"p"), file("predictions.jsonl"))
    found = collect_output([archive], POSES)
    assert isinstance(found, CollectedFiles)
    assert set(found.files) == {"pose/0001.npy", "predictions.jsonl"}
    assert violation(pose) is Diagnostic.OUTPUT_KIND
    for name in ("pose/a/b.npy", "pose/x.txt", "pose/.npy", "poses/0001.npy", "pose/..npy"):
        assert violation(file(name), rules=POSES) is Diagnostic.OUTPUT_NAME


def test_numbers_and_sizes_have_bounds() -> None:
    assert violation(*(file(str(n)) for n in range(4))) is Diagnostic.OUTPUT_TOO_MANY
    assert violation(file("a", bytes(4001))) is Diagnostic.OUTPUT_TOO_LARGE
    assert violation(file("a", bytes(3000)), file("b", bytes(3000))) is Diagnostic.OUTPUT_TOO_LARGE
    within = tar_of(file("a", bytes(4000)), file("b", bytes(1000)))
    assert isinstance(collect_output([within], RULES), CollectedFiles)


def test_reading_stops_where_a_file_is_too_large() -> None:
    header = member("output/bomb", b"")
    header.size = 2**40

    def endless() -> Iterator[bytes]:
        yield tar_of()[:512] + header.tobuf(tarfile.GNU_FORMAT)
        raise AssertionError("read on after the bound")

    result = collect_output(endless(), RULES)
    assert isinstance(result, OutputViolation)
    assert result.diagnostic is Diagnostic.OUTPUT_TOO_LARGE


def extended(records: bytes, claimed: int | None = None) -> bytes:
    header = member("output/pax", records, tarfile.XHDTYPE)
    header.size = len(records) if claimed is None else claimed
    padding = bytes(-len(records) % 512)
    return tar_of()[:512] + header.tobuf(tarfile.USTAR_FORMAT) + records + padding


@pytest.mark.parametrize(
    "stream",
    [
        b"",
        b"x" * 511,
        b"x" * 512,
        extended(b"", claimed=2**30),
        extended(b"99999 path=a\n"),
        extended(b"0 path=a\n"),
        extended(b"no record"),
        extended(b"9 path=ab"),
        extended(b"12 size=-50\n") + member("output/a", b"").tobuf(),
        tar_of(file("a", bytes(3000)))[:2500],
        tar_of()[:100] + b"9999999\0" + tar_of()[108:512],
    ],
)
def test_a_broken_stream_is_a_violation_and_no_crash(stream: bytes) -> None:
    result = collect_output([stream], RULES)
    assert isinstance(result, OutputViolation)
    assert result.detail.isprintable()


def test_sparse_files_are_named_as_such_in_extended_headers() -> None:
    records = b"22 GNU.sparse.major=1\n"
    stream = extended(records) + member("output/a").tobuf() + bytes(1024)
    result = collect_output([stream], RULES)
    assert isinstance(result, OutputViolation)
    assert "sparse" in result.detail


@given(st.binary(max_size=2048))
@settings(max_examples=60, deadline=None)
def test_noise_never_raises(noise: bytes) -> None:
    assert isinstance(collect_output([noise], RULES), OutputViolation)


@given(st.integers(0, 1535), st.integers(0, 255))
@settings(max_examples=120, deadline=None)
def test_one_changed_byte_never_raises(at: int, value: int) -> None:
    archive = bytearray(tar_of(file("a", b"1"), file("b", b"2")))
    archive[at] = value
    collect_output([bytes(archive)], RULES)
    assert isinstance(collect_output([bytes(archive)], RULES), CollectedFiles | OutputViolation)


def test_hashes_of_a_tree_are_those_of_its_files() -> None:
    archive = tar_of(file("a/b.npy", b"1" * 5000), file("exam.json", b"{}"))
    assert hash_tree([archive], b"output") == {
        b"a/b.npy": hashlib.sha256(b"1" * 5000).hexdigest(),
        b"exam.json": hashlib.sha256(b"{}").hexdigest(),
    }


def test_a_tree_with_links_is_not_hashed() -> None:
    with pytest.raises(TarError, match="symbolic link"):
        hash_tree([tar_of(("output/x", b"", tarfile.SYMTYPE))], b"output")
