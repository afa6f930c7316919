"""Files that a person names: read whole, or refused with the path and what to do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from manifests.errors import MalformedDocument
from orchestrator.support.files.input_files import list_input_folder, read_input_file


def test_a_file_is_read_up_to_its_bound(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_bytes(b"12345")
    assert read_input_file(path, limit_bytes=5) == b"12345"
    with pytest.raises(MalformedDocument, match=r"labels\.jsonl: 5 bytes; at most 4 are read"):
        read_input_file(path, limit_bytes=4)


def test_what_is_no_file_is_named_for_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(MalformedDocument, match=r"expected a file, but it is a folder"):
        read_input_file(tmp_path)
    with pytest.raises(MalformedDocument, match=r"expected a file, but it is not there"):
        read_input_file(tmp_path / "missing")


def test_a_pipe_is_refused_and_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(MalformedDocument, match="expected a file"):
        read_input_file(tmp_path / "pipe")


def test_a_file_behind_a_file_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for broken in (tmp_path / "file" / "below", tmp_path / ("x" * 300)):
        with pytest.raises(MalformedDocument, match=r"not there|cannot be read"):
            read_input_file(broken)


def test_a_folder_is_listed_by_name_and_suffix(tmp_path: Path) -> None:
    for name in ("b.npy", "a.npy", "c.json"):
        (tmp_path / name).touch()
    assert [path.name for path in list_input_folder(tmp_path, suffix=".npy")] == ["a.npy", "b.npy"]
    with pytest.raises(MalformedDocument, match="expected a folder"):
        list(list_input_folder(tmp_path / "a.npy", suffix=".npy"))
