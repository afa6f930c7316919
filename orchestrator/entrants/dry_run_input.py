"""What a dry run is made on: a folder in the Épée layout, and labels where there are some."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Final

from manifests.editions import Edition, Track, parse_edition
from manifests.errors import MalformedDocument
from manifests.exam import VOCABULARY_FILE
from manifests.labels import Labels, parse_labels, parse_salted_labels
from manifests.text import escape_untrusted
from manifests.vocabulary import parse_vocabulary
from orchestrator.editions.ports import ClipFolder
from orchestrator.entrants.diagnose_run import OpenClips
from orchestrator.runs.prepare_run import RunRequest
from orchestrator.runs.rules.verdict import Verdict
from orchestrator.samples.sample_edition import LABELS_FILE
from orchestrator.sandbox.rules.gpu import GpuPolicy
from orchestrator.scoring.rules.scoring import (
    Parameters,
    ScoringTask,
    default_parameters,
    edition_parameters,
    score,
)
from orchestrator.scoring.score_files import InputFile
from sandbox_profiles.profile import SandboxProfile
from scorers.cards import ScoreCard

EDITION_FILE: Final = "edition.yaml"
ReadFile = Callable[[str], bytes | None]
"""Returns a file beside the clips, or None where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunScoring:
    """How the answers are scored."""

    labels: Labels
    parameters: Parameters
    vocabulary: tuple[str, ...] | None

    def card(self, predictions: bytes) -> ScoreCard:
        """Score canonical predictions."""
        return score(
            ScoringTask(
                labels=self.labels,
                parameters=self.parameters,
                predictions=predictions,
                vocabulary=self.vocabulary,
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunInput:
    """The exam of a dry run."""

    track: Track
    place: str
    clips: OpenClips
    scoring: DryRunScoring | None

    def request(
        self,
        image: str,
        *,
        profile: SandboxProfile,
        gpu: GpuPolicy = GpuPolicy.OPTIONAL,
        repeat: int = 1,
    ) -> RunRequest:
        """Return the request to run `image`, which a tag may name, on these clips."""
        return RunRequest(
            image=image,
            exam=self.clips.exam,
            profile=profile,
            gpu=gpu,
            repeat=repeat,
            allow_tag=True,
        )

    def score(self, verdict: Verdict) -> ScoreCard:
        """Score what a completed run answered; there have to be labels."""
        assert self.scoring is not None
        assert verdict.canonical is not None
        return self.scoring.card(verdict.canonical)


def read_dry_run_input(
    folder: ClipFolder, read: ReadFile, *, track: Track | None, labels: InputFile | None
) -> DryRunInput:
    """Read clips, vocabulary, labels, and the folder's edition.yaml where it has one.

    The track is the one that was asked for, else the edition's, else recognition.

    Raises:
        MalformedDocument: with the file and the fact that is wrong.

    """
    edition = _edition(folder, read)
    exam_track = track or (edition.track if edition is not None else "recognition")
    if edition is not None and edition.track != exam_track:
        edition = None  # its vocabulary, labels and scorer belong to another exam
    vocabulary = read(edition.vocabulary if edition and edition.vocabulary else VOCABULARY_FILE)
    clips = OpenClips.read(folder, track=exam_track, vocabulary=vocabulary)
    found = labels or _own_labels(folder, read, edition, track=exam_track)
    scoring = None
    if found is not None:
        scoring = _scoring(found, exam_track, edition, vocabulary)
        _check_same_clips(scoring.labels, clips, found.source)
    return DryRunInput(track=exam_track, place=folder.place, clips=clips, scoring=scoring)


def _edition(folder: ClipFolder, read: ReadFile) -> Edition | None:
    data = read(EDITION_FILE)
    return None if data is None else parse_edition(data, source=f"{folder.place}/{EDITION_FILE}")


def _own_labels(
    folder: ClipFolder, read: ReadFile, edition: Edition | None, *, track: Track
) -> InputFile | None:
    """Return the folder's own labels, when they are of this exam."""
    name = edition.labels.path if edition is not None else LABELS_FILE
    data = read(name)
    if data is None:
        return None
    if edition is None and not _are_of_track(data, track):
        return None
    return InputFile(f"{folder.place}/{name}", data)


def _are_of_track(data: bytes, track: Track) -> bool:
    try:
        parse_labels(data, track=track, source=LABELS_FILE)
    except MalformedDocument:
        return False
    return True


def _scoring(
    labels: InputFile, track: Track, edition: Edition | None, vocabulary: bytes | None
) -> DryRunScoring:
    salted = labels.data.startswith(b'{"salt"')
    parse = parse_salted_labels if salted else parse_labels
    version = PurePath(labels.source).stem
    parameters = (
        replace(default_parameters(track), labels_version=version)
        if edition is None
        else edition_parameters(edition, version)
    )
    if vocabulary is None and track == "recognition":
        raise MalformedDocument(
            f"{labels.source}: scoring recognition needs the scored signs; put "
            f"{VOCABULARY_FILE} beside the clips, one gloss per line"
        )
    return DryRunScoring(
        labels=parse(labels.data, track=track, source=labels.source),
        parameters=parameters,
        vocabulary=None
        if vocabulary is None
        else parse_vocabulary(vocabulary, source=VOCABULARY_FILE),
    )


def _check_same_clips(labels: Labels, clips: OpenClips, source: str) -> None:
    """Refuse labels of other clips before anything runs: they could not be scored afterwards."""
    labelled = {entry.clip_id for entry in labels.entries}
    exam = set(clips.exam.exam.clips)
    for clip in sorted(labelled ^ exam):
        fact = "has no label" if clip in exam else "is not among the clips"
        shown = escape_untrusted(clip, 64)
        raise MalformedDocument(f"{source}: clip {shown} {fact}; label exactly the clips there are")
