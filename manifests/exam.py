"""`/input/exam.json`: what an entrant's container is told (design, section 4)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from manifests.editions import Track
from manifests.encoding import parse_json_object, readable_json
from manifests.names import ClipId, EditionName
from manifests.validation import Listed, StrictDocument, cross_field_error, validate_document

VOCABULARY_FILE = "vocabulary.txt"


class Exam(StrictDocument):
    """The container's task: track, layout, clips in order, and a vocabulary or none."""

    contract: Literal[1] = 1
    edition: EditionName
    track: Track
    layout: Literal["clerc-128"] = "clerc-128"
    clips: Annotated[tuple[ClipId, ...], Listed, Field(min_length=1)]
    vocabulary: Literal["vocabulary.txt"] | None = None

    @model_validator(mode="after")
    def _check_between_fields(self) -> Exam:
        if len(set(self.clips)) != len(self.clips):
            raise cross_field_error("clips", "a clip stands twice")
        if (self.track == "recognition") != (self.vocabulary is not None):
            raise cross_field_error("vocabulary", "recognition has one, other tracks have null")
        return self


def render_exam(exam: Exam) -> bytes:
    """Return the file of `exam`, readable by people, with a final newline."""
    return readable_json(exam.model_dump(mode="json"))


def parse_exam(data: bytes, *, source: str) -> Exam:
    """Parse an `exam.json`.

    Raises:
        MalformedDocument: with source, field, fact and bound.

    """
    values = parse_json_object(data, source=source)
    return validate_document(Exam, values, prefix=lambda _: source)
