"""Fill `/input`: from sealed clips, or from a folder of open ones. Both look the same inside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from manifests.annotations import EntrantAnnotation, parse_entrant_annotation
from manifests.digests import sha256_hex
from manifests.editions import Track
from manifests.errors import ClaimDoesNotHold
from manifests.exam import VOCABULARY_FILE, Exam, render_exam
from manifests.sums import parse_sums
from manifests.vocabulary import parse_vocabulary, render_vocabulary
from orchestrator.editions.clip_files import read_clip
from orchestrator.editions.ports import ClipFolder
from orchestrator.editions.rules.clip_archives import InputFile, input_bytes, unpack_clip
from orchestrator.editions.sealed_editions import SealedEdition
from orchestrator.editions.settle_editions import CLIP_SUMS_FILE
from orchestrator.keys.sealing_port import SealedFileChanged, Unsealer
from orchestrator.support.reporter import Reporter, Step
from orchestrator.workspace.opening import require_openable
from orchestrator.workspace.ports import WorkspaceStore

EXAM_FILE = "exam.json"
SeeAnnotation = Callable[[EntrantAnnotation], None]
"""Receives each clip's annotation as it goes by: what predictions are validated against."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExamInput:
    """Everything that `/input` will hold."""

    exam: Exam
    sums: Mapping[str, str]
    """The SHA-256 of every file of `/input`, by name; every file streamed was held against it."""
    size_bytes: int
    """The room that the files need on a tmpfs, at most."""
    clip_files: Callable[[], Iterator[tuple[InputFile, InputFile]]]
    """Streams keypoints and annotation of each clip, in the exam's order; one clip in memory."""
    exam_files: tuple[InputFile, ...]

    def files(self, see: SeeAnnotation | None = None) -> Iterator[InputFile]:
        """Yield every file of `/input`, verified, the exam's own files first."""
        yield from self.exam_files
        for keypoints, annotation in self.clip_files():
            if see is not None:
                see(parse_entrant_annotation(annotation.data, source=annotation.name))
            yield keypoints
            yield annotation


def open_sealed_clips(
    sealed: SealedEdition, *, store: WorkspaceStore, unsealer: Unsealer, reporter: Reporter
) -> ExamInput:
    """Open an edition's clips, one after another as they are asked for, into memory only.

    The stream holds each ciphertext against `sealed.sha256`, and each plaintext against the
    clip sums whose SHA-256 is the published seal.

    Raises:
        IdentityMissing: the identities at hand do not open this edition's clips.
        ClaimDoesNotHold, SealedFileChanged: a file is not what was sealed.

    """
    edition, folder = sealed.edition, sealed.folder
    layers = require_openable(
        sealed.seal.recipients.clips, unsealer, source=f"{store.root}/{folder}/sealed"
    )
    plain_sums = _open_clip_sums(sealed, store=store, unsealer=unsealer, layers=layers)
    clips = tuple(name.removeprefix("sealed/").removesuffix(".age") for name in sealed.cipher_sums)
    exam = _exam(edition.edition, edition.track, clips)
    exam_files = _exam_files(exam, sealed.vocabulary)
    sizes = {name: store.size_bytes(f"{folder}/{name}") for name in sealed.cipher_sums}

    def stream() -> Iterator[tuple[InputFile, InputFile]]:
        for done, clip_id in enumerate(clips, start=1):
            data = _read_cipher(sealed, clip_id, store)
            source = f"{store.root}/{folder}/sealed/{clip_id}.age"
            archive = unsealer.open_sealed(data, layers=layers, source=source)
            files = unpack_clip(archive, clip_id=clip_id, source=source)
            for file in files:
                _require_sum(file, plain_sums, source)
            reporter.progress(Step.PROVIDE, done, len(clips), "clips")
            yield files

    return ExamInput(
        exam=exam,
        sums=plain_sums | _sums_of(exam_files),
        size_bytes=input_bytes(sizes | {file.name: len(file.data) for file in exam_files}),
        clip_files=stream,
        exam_files=exam_files,
    )


def _open_clip_sums(
    sealed: SealedEdition, *, store: WorkspaceStore, unsealer: Unsealer, layers: int
) -> dict[str, str]:
    source = f"{store.root}/{sealed.folder}/{CLIP_SUMS_FILE}"
    data = open_clip_sums(sealed, store=store, unsealer=unsealer, layers=layers)
    return parse_sums(data, source=source, salted=True).by_name()


def open_clip_sums(
    sealed: SealedEdition, *, store: WorkspaceStore, unsealer: Unsealer, layers: int
) -> bytes:
    """Return the bytes of the salted clips.sha256, held against the published seal."""
    name = f"{sealed.folder}/{CLIP_SUMS_FILE}"
    source = f"{store.root}/{name}"
    data = unsealer.open_sealed(store.read(name), layers=layers, source=source)
    if sha256_hex(data) != sealed.statement.clip_set_sha256:
        raise ClaimDoesNotHold(
            f"{source}: SHA-256 {sha256_hex(data)[:16]}…, but the published seal is "
            f"{sealed.statement.clip_set_sha256[:16]}…; restore the file from a backup"
        )
    return data


def _read_cipher(sealed: SealedEdition, clip_id: str, store: WorkspaceStore) -> bytes:
    name = f"sealed/{clip_id}.age"
    data = store.read(f"{sealed.folder}/{name}")
    if sha256_hex(data) != sealed.cipher_sums[name]:
        raise SealedFileChanged(
            f"{store.root}/{sealed.folder}/{name}: not the file that sealed.sha256 lists; "
            "restore it from a backup"
        )
    return data


def _require_sum(file: InputFile, sums: Mapping[str, str], source: str) -> None:
    if sums.get(file.name) != sha256_hex(file.data):
        raise SealedFileChanged(f"{source}: opens to a {file.name} that the seal does not hold")


def read_open_clips(
    folder: ClipFolder,
    *,
    track: Track,
    edition: str = "dry-run",
    vocabulary: bytes | None = None,
) -> ExamInput:
    """Take a plain folder in the Épée layout as the exam, under the clips' own names.

    Every file is validated here and read again for the stream. Without a `vocabulary` a
    recognition exam gets the glosses of its annotations.

    Raises:
        MalformedDocument: with the file and the fact that is wrong.

    """
    clips = folder.clip_ids()
    sums: dict[str, str] = {}
    sizes: dict[str, int] = {}
    glosses: set[str] = set()
    for clip_id in clips:
        clip = read_clip(folder, clip_id, new_id=clip_id, track=track)
        glosses.update(segment.gloss for segment in clip.corpus.segments)
        for file in (clip.keypoints, clip.annotation):
            sums[file.name], sizes[file.name] = sha256_hex(file.data), len(file.data)
    exam = _exam(edition, track, clips)
    exam_files = _exam_files(exam, vocabulary or render_vocabulary(sorted(glosses)))

    def stream() -> Iterator[tuple[InputFile, InputFile]]:
        for clip_id in clips:
            clip = read_clip(folder, clip_id, new_id=clip_id, track=track)
            for file in (clip.keypoints, clip.annotation):
                _require_sum(file, sums, folder.place)
            yield clip.keypoints, clip.annotation

    return ExamInput(
        exam=exam,
        sums=sums | _sums_of(exam_files),
        size_bytes=input_bytes(sizes | {file.name: len(file.data) for file in exam_files}),
        clip_files=stream,
        exam_files=exam_files,
    )


def _exam(edition: str, track: Track, clips: tuple[str, ...]) -> Exam:
    if track == "recognition":
        return Exam(edition=edition, track=track, clips=clips, vocabulary="vocabulary.txt")
    return Exam(edition=edition, track=track, clips=clips)


def _exam_files(exam: Exam, vocabulary: bytes | None) -> tuple[InputFile, ...]:
    files = [InputFile(EXAM_FILE, render_exam(exam))]
    if exam.vocabulary is not None:
        data = vocabulary or b""
        parse_vocabulary(data, source=VOCABULARY_FILE)
        files.append(InputFile(VOCABULARY_FILE, data))
    return tuple(files)


def _sums_of(files: tuple[InputFile, ...]) -> dict[str, str]:
    return {file.name: sha256_hex(file.data) for file in files}
