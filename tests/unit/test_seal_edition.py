"""Sealing: foreign tools open and check it, bad input is named, a kill leaves all or nothing."""

from __future__ import annotations

import hashlib
import json
import pickle
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from manifests.encoding import parse_json_object
from manifests.errors import MalformedDocument, PlatformFault, RefusedByPolicy
from manifests.labels import parse_salted_labels
from manifests.statements import EditionSealed
from orchestrator.adapters.age_files import AgeKeyring, generate_identity, parse_identities
from orchestrator.adapters.epee_folder import EditionFile
from orchestrator.core.opaque_names import assign_opaque_names, parse_names, render_names
from orchestrator.core.seal_documents import SealRecipients, both_of, encode_seal, parse_seal
from orchestrator.ports.sealing import Purpose
from orchestrator.usecases.initialise import WorkspaceMakers, initialise
from orchestrator.usecases.seal_edition import SealingTools, seal_edition
from orchestrator.usecases.sealed_check import check_sealed_set
from orchestrator.usecases.sealed_editions import load_sealed_edition
from orchestrator.usecases.settle_editions import settle_abandoned

EDITION = "editions/sample-2026"
NPY_MAGIC = b"\x93NUMPY"
REAL_CLIPS = Path(__file__).parents[3] / "shared" / "data" / "real-clips"

foreign_tools = [tool for tool in ("age", "tar", "sha256sum") if shutil.which(tool) is None]
needs_foreign_tools = pytest.mark.skipif(
    bool(foreign_tools), reason=f"missing: {', '.join(foreign_tools)}"
)


def unpack_with_foreign_tools(root: Path, into: Path) -> None:
    """Open a sealed edition with age and tar, and check it with sha256sum, without our code."""
    into.mkdir()
    script = (
        "set -e; cd {root}/{edition}; sha256sum --strict --quiet -c sealed.sha256;"
        "for file in sealed/*.age; do age -d -i {root}/keys/clips.agekey $file | tar x -C {into};"
        " done; age -d -i {root}/keys/clips.agekey clips.sha256.age > {into}/clips.sha256;"
        "cd {into}; sha256sum --strict --quiet -c clips.sha256"
    )
    command = script.format(root=root, edition=EDITION, into=into)
    subprocess.run(["bash", "-o", "pipefail", "-c", command], check=True)


@needs_foreign_tools
def test_age_tar_and_sha256sum_open_and_check_what_was_sealed(
    sealing: SealingTools, sample: EditionFile, sample_root: Path, tmp_path: Path
) -> None:
    seal = seal_edition(sample, sealing)
    unpack_with_foreign_tools(sealing.store.root, tmp_path / "open")
    opened = {path.read_bytes() for path in (tmp_path / "open/keypoints").iterdir()}
    assert opened == {path.read_bytes() for path in (sample_root / "keypoints").iterdir()}
    sums = (tmp_path / "open/clips.sha256").read_bytes()
    assert hashlib.sha256(sums).hexdigest() == seal.clip_set_sha256


def test_nothing_that_an_entrant_gets_names_signer_phrase_or_gloss(
    sealing: SealingTools, sample: EditionFile, keyring: AgeKeyring, tmp_path: Path
) -> None:
    seal_edition(sample, sealing)
    unpack_with_foreign_tools(sealing.store.root, tmp_path / "open")
    for path in (tmp_path / "open/annotations").iterdir():
        annotation = json.loads(path.read_text())
        assert set(annotation) == {"clip_id", "fps", "n_frames", "segments"}
        assert all(set(segment) == {"start", "end"} for segment in annotation["segments"])
        assert annotation["clip_id"] == path.stem
    for name in sealing.store.list_names(f"{EDITION}/sealed"):
        assert sealing.store.size_bytes(f"{EDITION}/sealed/{name}") % 65536 < 1024


def test_the_ledger_commits_to_every_public_file(
    sealing: SealingTools, sample: EditionFile
) -> None:
    seal = seal_edition(sample, sealing)
    loaded = load_sealed_edition("sample-2026", store=sealing.store, ledger=sealing.ledger)
    assert loaded.seal == seal
    statement = loaded.statement
    for name, digest in (
        ("edition.yaml", statement.edition_sha256),
        ("seal.json", statement.seal_sha256),
        ("sealed.sha256", statement.sealed_sums_sha256),
        ("profile.yaml", statement.profile_sha256),
    ):
        data = sealing.store.read(f"{EDITION}/{name}")
        assert hashlib.sha256(data).hexdigest() == digest, name
    assert parse_seal(encode_seal(seal), source="seal.json") == seal
    assert check_sealed_set(EDITION, loaded.cipher_sums, store=sealing.store).files == 8


def test_labels_open_for_their_identity_only_and_match_the_commitment(
    sealing: SealingTools, sample: EditionFile, keyring: AgeKeyring, sample_root: Path
) -> None:
    seal = seal_edition(sample, sealing)
    sealed = sealing.store.read(f"{EDITION}/labels/labels-v1.age")
    with pytest.raises(PlatformFault, match="none of the 1 identities"):
        keyring.unsealer(Purpose.CLIPS).open_sealed(sealed, layers=1, source="labels-v1.age")
    unsealer = keyring.unsealer(Purpose.LABELS)
    salted = unsealer.open_sealed(sealed, layers=1, source="labels-v1.age")
    assert hashlib.sha256(salted).hexdigest() == seal.labels[0].sha256
    labels = parse_salted_labels(salted, track="recognition", source="labels-v1")
    sealed_map = sealing.store.read(f"{EDITION}/clip-names.age")
    names = parse_names(unsealer.open_sealed(sealed_map, layers=1, source="names"), source="names")
    original = [
        json.loads(line) for line in (sample_root / "labels-v1.jsonl").read_text().splitlines()
    ]
    assert {names[one["clip_id"]]: tuple(one["glosses"]) for one in original} == {
        label.clip_id: label.glosses  # type: ignore[union-attr]  # recognition labels have glosses
        for label in labels.entries
    }


def test_clip_names_are_shuffled_anew_for_every_seal() -> None:
    clip_ids = [f"clip_{number}" for number in range(200)]
    shuffle = secrets.SystemRandom().shuffle
    first, second = (assign_opaque_names(clip_ids, shuffle=shuffle) for _ in range(2))
    assert first != second
    assert sorted(first.values()) == [f"{number:04d}" for number in range(1, 201)]
    assert parse_names(render_names(first), source="map") == first


def test_more_clips_than_four_digits_get_longer_names() -> None:
    names = assign_opaque_names([str(number) for number in range(10_000)], shuffle=lambda _: None)
    assert {len(name) for name in names.values()} == {5}


def test_an_edition_is_sealed_once(sealing: SealingTools, sample: EditionFile) -> None:
    seal_edition(sample, sealing)
    before = contents(sealing.store.root)
    with pytest.raises(RefusedByPolicy, match="sealed already"):
        seal_edition(sample, sealing)
    assert contents(sealing.store.root) == before


def test_a_foreign_folder_of_that_name_is_left_alone(
    sealing: SealingTools, sample: EditionFile
) -> None:
    sealing.store.create(f"{EDITION}/thesis.tex", b"years of work")
    with pytest.raises(RefusedByPolicy, match="the ledger knows of no such edition"):
        seal_edition(sample, sealing)
    assert sealing.store.list_names(EDITION) == ("thesis.tex",)


@needs_foreign_tools
def test_two_person_labels_take_two_identities(
    sealing: SealingTools, sample: EditionFile, tmp_path: Path
) -> None:
    people = [generate_identity() for _ in range(2)]
    for (identity, _), name in zip(people, "ab", strict=True):
        (tmp_path / name).write_bytes(identity)
    recipients = SealRecipients(
        clips=sealing.recipients.clips, labels=both_of(people[0][1], people[1][1])
    )
    seal = seal_edition(sample, replace(sealing, recipients=recipients))
    labels = sealing.store.root / EDITION / "labels/labels-v1.age"
    command = f"age -d -i b {labels} | age -d -i a | sha256sum"
    opened = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, check=True)
    assert opened.stdout.split()[0].decode() == seal.labels[0].sha256
    assert parse_identities(people[0][0], source="a")


@needs_foreign_tools
@pytest.mark.skipif(not REAL_CLIPS.is_dir(), reason="the folder of real clips is missing")
def test_real_clips_are_sealed_and_open_again(sealing: SealingTools, tmp_path: Path) -> None:
    root = tmp_path / "real"
    write_real_edition(root)
    seal = seal_edition(EditionFile(root / "edition.yaml"), sealing)
    assert seal.clips == 2
    unpack_with_foreign_tools(sealing.store.root, tmp_path / "open")
    opened = {path.read_bytes() for path in (tmp_path / "open/keypoints").iterdir()}
    assert opened == {path.read_bytes() for path in REAL_CLIPS.glob("*.npy")}


def write_real_edition(root: Path) -> None:
    """Two real clips with made-up signs."""
    (root / "keypoints").mkdir(parents=True)
    (root / "annotations").mkdir()
    lines = []
    for name, fps, frames in (("holistic_a", 30, 130), ("holistic_b", 25, 97)):
        shutil.copy(REAL_CLIPS / f"{name}.npy", root / "keypoints")
        segments = [
            {"gloss": "YOU", "start": 0.2, "end": 1.0},
            {"gloss": "OLD", "start": 1.2, "end": 2},
        ]
        annotation = {"clip_id": name, "signer_id": "X", "fps": fps, "n_frames": frames}
        (root / f"annotations/{name}.json").write_text(
            json.dumps(annotation | {"segments": segments})
        )
        lines.append(json.dumps({"clip_id": name, "signer_id": "X", "glosses": ["YOU", "OLD"]}))
    (root / "labels-v1.jsonl").write_text("\n".join(lines) + "\n")
    (root / "vocabulary.txt").write_text("YOU\nOLD\n")
    (root / "edition.yaml").write_text(
        "edition: sample-2026\ntitle: Real\ntrack: recognition\nround: final\n"
        'exam_version: "1.0"\nlayout: clerc-128\nsource: .\nexpected_clips: 2\n'
        "vocabulary: vocabulary.txt\nlabels: {version: labels-v1, path: labels-v1.jsonl}\n"
        'scorer: {name: epee200, version: "2.1"}\nopens: 2026-01-01T00:00:00Z\n'
        "closes: 2026-07-01T00:00:00Z\norganizer: {name: X, contact: x@example.org}\n"
    )


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
) -> None:
    before = contents(sealing.store.root)
    spoil(sample_root / "keypoints/sample_0005.npy")
    with pytest.raises(MalformedDocument, match=message) as caught:
        seal_edition(sample, sealing)
    assert "sample_0005" in str(caught.value)
    assert_nothing_was_sealed(sealing, before)


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
) -> None:
    before = contents(sealing.store.root)
    spoil(sample_root)
    with pytest.raises(MalformedDocument, match=message):
        seal_edition(sample, sealing)
    assert_nothing_was_sealed(sealing, before)


def names_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def contents(root: Path) -> dict[str, bytes]:
    """Every file of the workspace but the locks, which stay."""
    files = (path for path in root.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


def assert_nothing_was_sealed(sealing: SealingTools, before: dict[str, bytes]) -> None:
    assert contents(sealing.store.root) == before
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


def test_two_processes_do_not_seal_one_edition_at_once(
    sealing: SealingTools, sample: EditionFile
) -> None:
    with (
        sealing.store.stage_edition("sample-2026"),
        pytest.raises(RefusedByPolicy, match="another process"),
    ):
        seal_edition(sample, sealing)


KILLED_SEAL = """
import os, pathlib, signal, sys
sys.path.insert(0, sys.argv[4])
from orchestrator.adapters import stored_ledger
from orchestrator.adapters.age_files import AgeKeyring
from orchestrator.adapters.epee_folder import EditionFile
from orchestrator.adapters.staged_editions import StagedFolder
from orchestrator.usecases.seal_edition import seal_edition
import importlib.util
spec = importlib.util.spec_from_file_location("fixtures", sys.argv[5])
fixtures = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fixtures)

root, source, point = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
def before(owner, name):
    setattr(owner, name, die)
def after(owner, name):
    real = getattr(owner, name)
    def wrapped(*arguments, **options):
        real(*arguments, **options)
        die()
    setattr(owner, name, wrapped)
def at_file(wanted):
    real = StagedFolder.add
    def add(self, name, *parts):
        if name == wanted:
            data = b"".join(parts)
            (self._folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self._folder / name).write_bytes(data[: len(data) // 2])
            die()
        real(self, name, *parts)
    StagedFolder.add = add
where, _, what = point.partition(" ")
if where == "within":
    at_file(what)
else:
    owner = {"decide": stored_ledger.StoredLedger}.get(what, StagedFolder)
    {"before": before, "after": after}[where](owner, what)
seal_edition(EditionFile(source), fixtures.tools_of(root, AgeKeyring(root / "keys")))
"""

UNDECIDED = (
    "within edition.yaml",
    "within sealed/0001.age",
    "within sealed/0006.age",
    "within labels/labels-v1.age",
    "within seal.json",
    "before make_durable",
    "after make_durable",
    "before decide",
)
DECIDED = ("after decide", "before publish", "after publish")


def kill_seal(sealing: SealingTools, sample: EditionFile, point: str) -> None:
    here = Path(__file__)
    arguments = [str(sealing.store.root), sample.place, point, str(here.parents[2])]
    command = [sys.executable, "-c", KILLED_SEAL, *arguments, str(here.with_name("conftest.py"))]
    done = subprocess.run(command, check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()


@pytest.mark.parametrize("point", UNDECIDED)
def test_a_seal_killed_before_its_statement_leaves_no_edition(
    sealing: SealingTools, sample: EditionFile, point: str
) -> None:
    kill_seal(sealing, sample, point)
    assert not any(NPY_MAGIC in data for data in contents(sealing.store.root).values())
    assert not sealing.store.exists(EDITION)
    assert settle_abandoned(sealing.store, sealing.ledger) == ()
    assert names_in(sealing.store.root / "editions") == []
    assert seal_edition(sample, sealing).clips == 8


@pytest.mark.parametrize("point", DECIDED)
def test_a_seal_killed_after_its_statement_is_finished_by_the_next_command(
    sealing: SealingTools, sample: EditionFile, point: str
) -> None:
    kill_seal(sealing, sample, point)
    assert not any(NPY_MAGIC in data for data in contents(sealing.store.root).values())
    settle_abandoned(sealing.store, sealing.ledger)
    loaded = load_sealed_edition("sample-2026", store=sealing.store, ledger=sealing.ledger)
    assert check_sealed_set(EDITION, loaded.cipher_sums, store=sealing.store).files == 8
    assert names_in(sealing.store.root / "editions") == ["sample-2026"]
    statements = [entry.statement for entry in sealing.ledger.entries(edition="sample-2026")]
    assert [type(statement) for statement in statements] == [EditionSealed]


def test_a_live_seal_is_not_settled_by_another_process(
    sealing: SealingTools, sample: EditionFile
) -> None:
    with sealing.store.stage_edition("sample-2026") as staged:
        staged.add("seal.json", b"{}")
        assert settle_abandoned(sealing.store, sealing.ledger) == ()
        assert staged.read_optional("seal.json") == b"{}"


def test_the_seal_repeats_the_workspaces_published_keys(
    sealing: SealingTools, sample: EditionFile
) -> None:
    seal_edition(sample, sealing)
    document = parse_json_object(sealing.store.read(f"{EDITION}/seal.json"), source="seal.json")
    published = [key.key_id for key in sealing.ledger.keyset().published()]
    keys = document["keys"]
    assert isinstance(keys, list)
    assert [key["key_id"] for key in keys if isinstance(key, dict)] == published
