"""Read one clip of an Épée folder and turn it into what an entrant is given."""

from __future__ import annotations

from dataclasses import dataclass

from manifests.annotations import (
    EpeeAnnotation,
    parse_epee_annotation,
    render_entrant_annotation,
)
from manifests.clips import parse_keypoints
from manifests.editions import Track
from manifests.errors import MalformedDocument
from manifests.labels import LabelledClip
from manifests.text import escape_untrusted
from orchestrator.editions.ports import ClipFolder
from orchestrator.editions.rules.clip_archives import InputFile, annotation_name, keypoints_name


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrantClip:
    """A validated clip: the two files for `/input`, and what the corpus says about it."""

    keypoints: InputFile
    annotation: InputFile
    corpus: EpeeAnnotation

    def labelled(self) -> LabelledClip:
        """Return what the clip's label must agree with."""
        corpus = self.corpus
        return LabelledClip(
            n_segments=len(corpus.segments), n_frames=corpus.n_frames, fps=corpus.fps
        )


def read_clip(folder: ClipFolder, clip_id: str, *, new_id: str, track: Track) -> EntrantClip:
    """Read, validate and rename one clip.

    Raises:
        MalformedDocument: with the file and the first fact that is wrong.

    """
    annotation_place = f"{folder.place}/{annotation_name(clip_id)}"
    corpus = parse_epee_annotation(folder.annotation(clip_id), source=annotation_place)
    _check(corpus, clip_id, track, annotation_place)
    data = folder.keypoints(clip_id)
    source = f"{folder.place}/{keypoints_name(clip_id)}"
    parse_keypoints(data, source=source, n_frames=corpus.n_frames)
    facing = corpus.for_entrant(clip_id=new_id, with_segments=track == "recognition")
    return EntrantClip(
        keypoints=InputFile(keypoints_name(new_id), data),
        annotation=InputFile(annotation_name(new_id), render_entrant_annotation(facing)),
        corpus=corpus,
    )


def _check(corpus: EpeeAnnotation, clip_id: str, track: Track, place: str) -> None:
    if corpus.clip_id != clip_id:
        shown = escape_untrusted(corpus.clip_id, 64)
        raise MalformedDocument(f"{place}: says clip_id {shown}; name file and clip alike")
    if track == "recognition" and not corpus.segments:
        raise MalformedDocument(f"{place}: no segments; recognition needs one sign at least")
