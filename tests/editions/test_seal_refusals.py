"""Sealing refuses what is not right, with file and fact, and leaves nothing behind."""

from __future__ import annotations

import json
import pickle
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from manifests.errors import MalformedDocument, PlatformFault
from orchestrator.editions.epee.epee_folder import EditionFile
from orchestrator.editions.seal_edition import SealingTools, seal_edition
from orchestrator.workspace.initialise import WorkspaceMakers, initialise

ContentsOf = Callable[[Path], dict[str, bytes]]


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def pickled(path: Path) -> None:
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)


def bare_pickle(path: Path) -> None:
    path.write_bytes(pickle.dumps([1, 2]))


def with_nan(path: Path) -> None:
    array = np.load(path)
    array[3, 5, 1] = np.nan
    np.save(path, array)


def wrong_dtype(path: Path) -> None:
    np.save(path, np.load(path).astype(np.float64))


def a_frame_less(path: Path) -> None:
    np.save(path, np.load(path)[:-1])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (truncate, "the file is cut"),
        (pickled, "pickled"),
        (bare_pickle, "not an .npy file"),
        (with_nan, "frame 3, point 5, coordinate 1 is nan"),
        (wrong_dtype, "dtype <f8"),
        (a_frame_less, "the annotation says"),
        (Path.unlink, r"keypoints/sample_0005\.npy is missing"),
    ],
)
def test_a_bad_keypoint_file_is_named_and_nothing_is_left(
    sealing: SealingTools,
    sample: EditionFile,
    sample_root: Path,
    spoil: Callable[[Path], None],
    message: str,
    contents_of: ContentsOf,
) -> None:
    before = contents_of(sealing.store.root)
    spoil(sample_root / "keypoints/sample_0005.npy")
    with pytest.raises(MalformedDocument, match=message) as caught:
        seal_edition(sample, sealing)
    assert "sample_0005" in str(caught.value)
    assert_nothing_was_sealed(sealing, before, contents_of)


def rewrite_annotation(**changes: object) -> Callable[[Path], None]:
    def rewrite(root: Path) -> None:
        path = root / "annotations/sample_0005.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return rewrite


def rewrite_labels(change: Callable[[list[str]], list[str]]) -> Callable[[Path], None]:
    def rewrite(root: Path) -> None:
        path = root / "labels-v1.jsonl"
        path.write_text("".join(change(path.read_text().splitlines(keepends=True))))

    return rewrite


def rewrite_edition(old: str, new: str) -> Callable[[Path], None]:
    def rewrite(root: Path) -> None:
        path = root / "edition.yaml"
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))

    return rewrite


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (rewrite_annotation(clip_id="other"), r"sample_0005\.json: says clip_id other"),
        (rewrite_annotation(segments=[]), "no segments"),
        (
            rewrite_annotation(segments=[{"gloss": "YOU", "start": 0.1, "end": 999}]),
            "leaves the clip",
        ),
        (rewrite_labels(lambda lines: lines[1:]), "1 of 8 clips have no label"),
        (rewrite_labels(lambda lines: [*lines, lines[0]]), "labelled twice"),
        (
            rewrite_labels(lambda lines: [lines[0].replace("sample_0001", "stranger"), *lines[1:]]),
            "no such clip",
        ),
        (
            rewrite_labels(
                lambda lines: [lines[0].replace('"glosses":[', '"glosses":["YOU",'), *lines[1:]]
            ),
            "glosses for",
        ),
        (rewrite_edition("expected_clips: 8", "expected_clips: 9"), "8 clips, but the edition"),
        (rewrite_edition("held_out_signer: ECHO", "held_out_signer: ZULU"), "ZULU signs no clip"),
        (rewrite_edition("source: .", "source: nowhere"), "no such folder"),
        (rewrite_edition("path: labels-v1.jsonl", "path: nowhere"), "is not there"),
        (lambda root: (root / "vocabulary.txt").write_text("YOU\nYOU\n"), "stands on line 1"),
        (lambda root: (root / "keypoints/a b.npy").touch(), "is not a clip id"),
        (lambda root: (root / "annotations/sample_0005.json").unlink(), "every clip needs both"),
    ],
)
def test_a_bad_edition_is_refused_and_nothing_is_left(
    sealing: SealingTools,
    sample: EditionFile,
    sample_root: Path,
    spoil: Callable[[Path], None],
    message: str,
    contents_of: ContentsOf,
) -> None:
    before = contents_of(sealing.store.root)
    spoil(sample_root)
    with pytest.raises(MalformedDocument, match=message):
        seal_edition(sample, sealing)
    assert_nothing_was_sealed(sealing, before, contents_of)


def assert_nothing_was_sealed(
    sealing: SealingTools, before: dict[str, bytes], contents_of: ContentsOf
) -> None:
    assert contents_of(sealing.store.root) == before
    assert list((sealing.store.root / "editions").iterdir()) == []
    assert list(sealing.ledger.entries(kind="edition-sealed")) == []


def test_a_full_disk_leaves_no_half_edition(
    small_disk: Path,
    workspace_makers: WorkspaceMakers,
    sample: EditionFile,
    tools_at: Callable[[Path], SealingTools],
) -> None:
    initialise(small_disk, origin="example.org/piste", make=workspace_makers)
    tools = tools_at(small_disk)
    with pytest.raises(PlatformFault, match="the disk is full: free space"):
        seal_edition(sample, tools)
    assert list((small_disk / "editions").iterdir()) == []
    assert list(tools.ledger.entries(kind="edition-sealed")) == []


def test_a_read_only_workspace_is_refused(
    small_disk: Path,
    workspace_makers: WorkspaceMakers,
    sample: EditionFile,
    tools_at: Callable[[Path], SealingTools],
) -> None:
    initialise(small_disk, origin="example.org/piste", make=workspace_makers)
    tools = tools_at(small_disk)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(PlatformFault, match="the file system is read-only"):
        seal_edition(sample, tools)
