"""Filling /input: from sealed clips and from open ones, verified on the way, the same inside."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from pathlib import Path

import pytest

from manifests.annotations import EntrantAnnotation
from manifests.digests import sha256_hex
from manifests.errors import ClaimDoesNotHold, MalformedDocument, PlatformFault, RefusedByPolicy
from manifests.exam import parse_exam
from orchestrator.editions.epee.epee_folder import EditionFile, EpeeFolder
from orchestrator.editions.open_clips import ExamInput, open_sealed_clips, read_open_clips
from orchestrator.editions.rules.clip_archives import (
    InputFile,
    annotation_name,
    keypoints_name,
    pack_clip,
    stream_input,
)
from orchestrator.editions.seal_edition import SealingTools, seal_edition
from orchestrator.editions.sealed_editions import SealedEdition, load_sealed_edition
from orchestrator.evidence.rules.catalogue import Check
from orchestrator.keys.age.age_files import (
    AgeKeyring,
    AgeUnsealer,
    generate_identity,
    parse_identities,
)
from orchestrator.keys.sealing_port import IdentityMissing, Purpose, SealedFileChanged
from orchestrator.support.reporter import SilentReporter
from tests.support.synthetic_evidence import failed, verify
from tests.support.workspace_fixtures import sealed_clips_fault

EDITION = "editions/sample-2026"


@pytest.fixture
def sealed(sealing: SealingTools, sample: EditionFile) -> SealedEdition:
    seal_edition(sample, sealing)
    return load_sealed_edition("sample-2026", store=sealing.store, ledger=sealing.ledger)


def opened(sealed: SealedEdition, sealing: SealingTools, keyring: AgeKeyring) -> ExamInput:
    unsealer = keyring.unsealer(Purpose.CLIPS)
    return open_sealed_clips(
        sealed, store=sealing.store, unsealer=unsealer, reporter=SilentReporter()
    )


def test_the_stream_holds_exactly_the_files_that_the_sums_promise(
    sealed: SealedEdition, sealing: SealingTools, keyring: AgeKeyring, sample_root: Path
) -> None:
    exam_input = opened(sealed, sealing, keyring)
    files = {file.name: file.data for file in exam_input.files()}
    assert {name: sha256_hex(data) for name, data in files.items()} == dict(exam_input.sums)
    assert sum(map(len, files.values())) < exam_input.size_bytes
    exam = parse_exam(files["exam.json"], source="exam.json")
    assert exam.clips == tuple(f"{number:04d}" for number in range(1, 9))
    assert files["vocabulary.txt"] == (sample_root / "vocabulary.txt").read_bytes()
    original = {path.read_bytes() for path in (sample_root / "keypoints").iterdir()}
    assert {data for name, data in files.items() if name.startswith("keypoints/")} == original


def test_the_annotations_go_by_for_the_validator(
    sealed: SealedEdition, sealing: SealingTools, keyring: AgeKeyring
) -> None:
    seen: dict[str, EntrantAnnotation] = {}
    exam_input = opened(sealed, sealing, keyring)
    for _ in exam_input.files(lambda annotation: seen.update({annotation.clip_id: annotation})):
        pass
    assert tuple(seen) == exam_input.exam.clips
    assert all(annotation.segments for annotation in seen.values())


def test_the_stream_can_be_taken_twice(
    sealed: SealedEdition, sealing: SealingTools, keyring: AgeKeyring
) -> None:
    exam_input = opened(sealed, sealing, keyring)
    assert list(exam_input.files()) == list(exam_input.files())


def test_the_tar_for_the_container_unpacks_to_the_same_files(
    sealed: SealedEdition, sealing: SealingTools, keyring: AgeKeyring
) -> None:
    exam_input = opened(sealed, sealing, keyring)
    stream = io.BytesIO(b"".join(stream_input(exam_input.files())))
    with tarfile.open(fileobj=stream, mode="r:") as tar:
        names = [info.name for info in tar if info.isreg()]
    assert sorted(names) == sorted(exam_input.sums)


def test_an_open_folder_looks_the_same_inside_as_a_sealed_one(
    sealed: SealedEdition, sealing: SealingTools, keyring: AgeKeyring, sample_root: Path
) -> None:
    dry = read_open_clips(
        EpeeFolder(sample_root),
        track="recognition",
        vocabulary=(sample_root / "vocabulary.txt").read_bytes(),
    )
    certified = opened(sealed, sealing, keyring)

    def shape(exam_input: ExamInput) -> list[tuple[str, list[str]]]:
        return [
            (Path(file.name).parent.name + Path(file.name).suffix, sorted(json.loads(file.data)))
            for file in exam_input.files()
            if file.name.endswith(".json")
        ]

    assert shape(dry) == shape(certified)
    assert {file.name: sha256_hex(file.data) for file in dry.files()} == dict(dry.sums)
    assert dry.exam.clips[0] == "sample_0001"


def test_an_open_folder_without_vocabulary_gets_its_own_glosses(sample_root: Path) -> None:
    dry = read_open_clips(EpeeFolder(sample_root), track="recognition")
    files = {file.name: file.data for file in dry.files()}
    labels = (sample_root / "labels-v1.jsonl").read_text().splitlines()
    glosses = {gloss for line in labels for gloss in json.loads(line)["glosses"]}
    assert files["vocabulary.txt"].decode().split() == sorted(glosses)


@pytest.mark.parametrize("track", ["translation", "segmentation"])
def test_other_tracks_are_given_no_segments_and_no_vocabulary(
    sample_root: Path, track: str
) -> None:
    dry = read_open_clips(EpeeFolder(sample_root), track=track)  # type: ignore[arg-type]  # parametrised
    files = {file.name: file.data for file in dry.files()}
    assert "vocabulary.txt" not in files
    assert json.loads(files["annotations/sample_0001.json"])["segments"] == []


def test_an_open_clip_that_changes_meanwhile_is_noticed(sample_root: Path) -> None:
    dry = read_open_clips(EpeeFolder(sample_root), track="recognition")
    path = sample_root / "keypoints/sample_0003.npy"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(SealedFileChanged, match=r"keypoints/sample_0003\.npy"):
        list(dry.files())


def test_an_empty_folder_is_no_exam(tmp_path: Path) -> None:
    with pytest.raises(MalformedDocument, match="no such folder"):
        read_open_clips(EpeeFolder(tmp_path), track="recognition")


def flip(path: Path, position: int = -1) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


def test_a_changed_ciphertext_is_named_and_nothing_of_it_comes_out(
    sealed: SealedEdition, sealing: SealingTools, keyring: AgeKeyring
) -> None:
    flip(sealing.store.root / EDITION / "sealed/0004.age")
    exam_input = opened(sealed, sealing, keyring)
    came: list[str] = []
    with pytest.raises(SealedFileChanged, match=r"sealed/0004\.age: not the file"):
        came.extend(file.name for file in exam_input.files())
    assert "keypoints/0004.npy" not in came


def test_a_clip_that_somebody_else_encrypted_is_not_taken(
    sealed: SealedEdition, sealing: SealingTools, keyring: AgeKeyring, sample_root: Path
) -> None:
    """Anybody can encrypt to a public recipient, and could also rewrite the list of ciphertexts."""
    forged = pack_clip(
        [
            InputFile(keypoints_name("0004"), b"forged"),
            InputFile(annotation_name("0004"), b"{}"),
        ]
    )
    cipher = sealing.sealer.seal(b"".join(forged), sealing.recipients.clips)
    (sealing.store.root / EDITION / "sealed/0004.age").write_bytes(cipher)
    sums = sealed.cipher_sums | {"sealed/0004.age": sha256_hex(cipher)}
    forged_edition = SealedEdition(
        folder=sealed.folder,
        statement=sealed.statement,
        edition=sealed.edition,
        seal=sealed.seal,
        profile=sealed.profile,
        vocabulary=sealed.vocabulary,
        cipher_sums=sums,
    )
    with pytest.raises(SealedFileChanged, match="that the seal does not hold"):
        list(opened(forged_edition, sealing, keyring).files())


def test_a_wrong_identity_is_refused_before_anything_is_streamed(
    sealed: SealedEdition, sealing: SealingTools
) -> None:
    stranger = AgeUnsealer(parse_identities(generate_identity()[0], source="stranger"))
    with pytest.raises(
        IdentityMissing, match="no identity here opens it; it takes the identity of age1"
    ):
        open_sealed_clips(sealed, store=sealing.store, unsealer=stranger, reporter=SilentReporter())


def test_other_clip_sums_than_the_published_seal_are_refused(
    sealed: SealedEdition, sealing: SealingTools, keyring: AgeKeyring
) -> None:
    other = sealing.sealer.seal(b"# salt: " + b"0" * 64 + b"\n", sealing.recipients.clips)
    (sealing.store.root / EDITION / "clips.sha256.age").write_bytes(other)
    with pytest.raises(ClaimDoesNotHold, match="the published seal is"):
        opened(sealed, sealing, keyring)


@pytest.mark.parametrize(
    "name", ["edition.yaml", "seal.json", "sealed.sha256", "profile.yaml", "vocabulary.txt"]
)
def test_a_changed_public_file_is_not_loaded(
    sealed: SealedEdition, sealing: SealingTools, name: str
) -> None:
    flip(sealing.store.root / EDITION / name)
    with pytest.raises(ClaimDoesNotHold, match=f"{name}: SHA-256 .* was sealed"):
        load_sealed_edition("sample-2026", store=sealing.store, ledger=sealing.ledger)


def test_an_unknown_edition_is_refused_with_the_known_ones(
    sealed: SealedEdition, sealing: SealingTools
) -> None:
    with pytest.raises(RefusedByPolicy, match="the editions are sample-2026"):
        load_sealed_edition("other", store=sealing.store, ledger=sealing.ledger)


def test_verify_sees_changed_missing_and_unlisted_ciphertexts(
    sealed: SealedEdition, sealing: SealingTools
) -> None:
    assert len(sealed.cipher_sums) == 8
    assert sealed_clips_fault(sealing.store.root) is None
    folder = sealing.store.root / EDITION / "sealed"
    flip(folder / "0002.age")
    (folder / "0003.age").unlink()
    shutil.copy(folder / "0001.age", folder / "0009.age")
    faults = sealed_clips_fault(sealing.store.root)
    assert faults is not None
    changed, missing, unlisted = faults
    assert "sealed/0002.age: SHA-256" in changed
    assert missing.endswith("sealed/0003.age: is listed, but missing")
    assert unlisted.endswith("sealed/0009.age: is there, but not listed")


def test_a_link_among_the_ciphertexts_is_not_followed(
    sealed: SealedEdition, sealing: SealingTools
) -> None:
    path = sealing.store.root / EDITION / "sealed/0002.age"
    path.rename(path.with_name("real"))
    path.symlink_to("real")
    unsealer = AgeKeyring(sealing.store.root / "keys").unsealer(Purpose.CLIPS)
    with pytest.raises(PlatformFault, match="symbolic link"):
        open_sealed_clips(sealed, store=sealing.store, unsealer=unsealer, reporter=SilentReporter())
    assert Check.TREE in failed(verify(sealing.store.root))
