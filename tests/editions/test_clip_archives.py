"""A clip's archive: same bytes, padded length, read by tar, and not trusted because it opens."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests.errors import PlatformFault
from orchestrator.editions.rules.clip_archives import (
    PADDING_BYTES,
    InputFile,
    input_bytes,
    pack_clip,
    stream_input,
    unpack_clip,
)

KEYPOINTS = "keypoints/0001.npy"
ANNOTATION = "annotations/0001.json"


def packed(given: Iterable[InputFile]) -> bytes:
    return b"".join(pack_clip(given))


def files(keypoints: bytes = b"k" * 3000, annotation: bytes = b"{}\n") -> list[InputFile]:
    return [InputFile(KEYPOINTS, keypoints), InputFile(ANNOTATION, annotation)]


@settings(max_examples=40, deadline=None)
@given(size=st.integers(0, 200_000), extra=st.integers(0, 600))
def test_an_archive_gives_its_files_back_and_its_length_says_little(size: int, extra: int) -> None:
    given_files = files(b"k" * size, b"a" * extra)
    archive = packed(given_files)
    assert len(archive) % PADDING_BYTES == 0
    assert len(archive) - size - extra < 2 * PADDING_BYTES
    assert list(unpack_clip(archive, clip_id="0001", source="x")) == given_files
    assert packed(given_files) == archive


@pytest.mark.skipif(shutil.which("tar") is None, reason="tar is missing")
@pytest.mark.parametrize("size", [0, 61_000, 62_464, 63_000, 200_000])
def test_tar_reads_an_archive_to_its_last_byte(tmp_path: Path, size: int) -> None:
    """A writer that tar leaves alone would die of a broken pipe."""
    archive = packed(files(b"k" * size))
    command = ["tar", "--warning=all", "-x", "-v", "-C", str(tmp_path)]
    done = subprocess.run(command, input=archive, capture_output=True, check=True, text=False)
    assert done.stdout.decode().split() == [KEYPOINTS, ANNOTATION]
    assert done.stderr == b""
    assert (tmp_path / KEYPOINTS).read_bytes() == b"k" * size
    facts = (tmp_path / KEYPOINTS).stat()
    assert (facts.st_mtime, facts.st_mode & 0o777) == (0, 0o444)


def hostile(kind: bytes = tarfile.REGTYPE, name: str = KEYPOINTS) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        info = tarfile.TarInfo(name)
        info.type, info.linkname = kind, "/etc/passwd"
        tar.addfile(info)
        tar.addfile(tarfile.TarInfo(ANNOTATION))
    return buffer.getvalue()


@pytest.mark.parametrize(
    "archive",
    [
        b"not a tar at all",
        bytes(PADDING_BYTES),
        packed(files()[:1]),
        packed(reversed(files())),
        packed([*files(), InputFile("keypoints/0002.npy", b"")]),
        hostile(name="keypoints/0002.npy"),
        hostile(name="../keypoints/0001.npy"),
        hostile(kind=tarfile.SYMTYPE),
        hostile(kind=tarfile.LNKTYPE),
        hostile(kind=tarfile.FIFOTYPE),
        hostile(kind=tarfile.DIRTYPE),
    ],
)
def test_an_archive_that_holds_anything_else_is_refused(archive: bytes) -> None:
    with pytest.raises(PlatformFault, match="sealed/0001"):
        unpack_clip(archive, clip_id="0001", source="sealed/0001.age")


def test_the_input_stream_is_a_tar_with_read_only_files_and_folders() -> None:
    stream = io.BytesIO(b"".join(stream_input([InputFile("exam.json", b"{}"), *files()])))
    with tarfile.open(fileobj=stream, mode="r:") as tar:
        found = [(info.name, info.mode, info.uid, info.isreg()) for info in tar]
    assert found == [
        ("keypoints", 0o555, 65532, False),
        ("annotations", 0o555, 65532, False),
        ("exam.json", 0o444, 65532, True),
        (KEYPOINTS, 0o444, 65532, True),
        (ANNOTATION, 0o444, 65532, True),
    ]


def test_the_room_for_input_holds_every_page() -> None:
    assert input_bytes({}) > 0
    assert input_bytes({"a": 1, "b": 4097}) - input_bytes({}) >= 3 * 4096
