"""Sealing: foreign tools open and check it, bad input is named, a kill leaves all or nothing."""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from manifests.encoding import parse_json_object
from manifests.errors import PlatformFault, RefusedByPolicy
from manifests.labels import parse_salted_labels
from orchestrator.editions.epee.epee_folder import EditionFile
from orchestrator.editions.rules.opaque_names import assign_opaque_names, parse_names, render_names
from orchestrator.editions.rules.seal_documents import encode_seal, parse_seal
from orchestrator.editions.seal_edition import SealingTools, seal_edition
from orchestrator.editions.sealed_editions import load_sealed_edition
from orchestrator.keys.age.age_files import AgeKeyring, generate_identity, parse_identities
from orchestrator.keys.rules.recipients import SealRecipients, both_of
from orchestrator.keys.sealing_port import Purpose
from tests.support.workspace_fixtures import sealed_clips_fault

ContentsOf = Callable[[Path], dict[str, bytes]]
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
    assert len(loaded.cipher_sums) == 8
    assert sealed_clips_fault(sealing.store.root) is None


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


def test_an_edition_is_sealed_once(
    sealing: SealingTools, sample: EditionFile, contents_of: ContentsOf
) -> None:
    seal_edition(sample, sealing)
    before = contents_of(sealing.store.root)
    with pytest.raises(RefusedByPolicy, match="sealed already"):
        seal_edition(sample, sealing)
    assert contents_of(sealing.store.root) == before


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


def test_two_processes_do_not_seal_one_edition_at_once(
    sealing: SealingTools, sample: EditionFile
) -> None:
    with (
        sealing.store.stage_edition("sample-2026"),
        pytest.raises(RefusedByPolicy, match="another process"),
    ):
        seal_edition(sample, sealing)


def test_the_seal_repeats_the_workspaces_published_keys(
    sealing: SealingTools, sample: EditionFile
) -> None:
    seal_edition(sample, sealing)
    document = parse_json_object(sealing.store.read(f"{EDITION}/seal.json"), source="seal.json")
    published = [key.key_id for key in sealing.ledger.keyset().published()]
    keys = document["keys"]
    assert isinstance(keys, list)
    assert [key["key_id"] for key in keys if isinstance(key, dict)] == published
