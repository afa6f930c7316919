"""What is wrong with the answers: absent, elsewhere, of another kind, invalid, incomplete."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from manifests.outcomes import Diagnostic, Outcome
from manifests.predictions.problems import ProblemKind
from orchestrator.entrants.rules.findings import Cause, Certainty, Finding
from orchestrator.entrants.rules.log_reading import shown
from orchestrator.entrants.rules.observations import Observation
from orchestrator.entrants.rules.quantities import size_text
from orchestrator.entrants.rules.writing import answers_elsewhere
from orchestrator.scoring.rules.assessment import PREDICTIONS_FILE

_EXPECTED: Final = f"/output/{PREDICTIONS_FILE}"
_MOST_SHOWN: Final = 4
_NOT_ACCEPTED: Final = {
    Diagnostic.OUTPUT_KIND: "a link, pipe, device or folder",
    Diagnostic.OUTPUT_NAME: "a name that is not accepted",
    Diagnostic.OUTPUT_TOO_MANY: "too many files",
    Diagnostic.OUTPUT_TOO_LARGE: "too large a file",
}

REMEDIES: Final = {
    ProblemKind.FILE_TOO_LARGE: "write the required fields alone",
    ProblemKind.LINE_TOO_LONG: "write one JSON object per line, not the whole file as one",
    ProblemKind.BLANK_LINE: "write one JSON object per line and nothing else",
    ProblemKind.TOO_DEEP: "write the fields of the contract alone, without nesting",
    ProblemKind.NOT_JSON: (
        "write each line with json.dumps(…); NaN and Infinity are no JSON: test with math.isfinite"
    ),
    ProblemKind.UNKNOWN_FIELD: "leave the field out",
    ProblemKind.MISSING_FIELD: "write every field of the contract, on every line",
    ProblemKind.WRONG_TYPE: "convert with str(), int(), float() or .tolist() before json.dumps",
    ProblemKind.UNKNOWN_CLIP: "take clip ids from /input/exam.json, without a suffix as .npy",
    ProblemKind.DUPLICATE_CLIP: "write each clip once",
    ProblemKind.TOO_MANY_SIGNS: "answer one sign for each segment of the clip's annotation",
    ProblemKind.CANDIDATE_COUNT: "give one to three candidates, the best one first",
    ProblemKind.BAD_GLOSS: "write glosses as in vocabulary.txt, without spaces around or inside",
    ProblemKind.BAD_CONFIDENCE: "write confidences between 0 and 1, for example after a softmax",
    ProblemKind.BAD_TEXT: "write the sentence as plain text of one line",
    ProblemKind.SEGMENT_OUTSIDE: "keep frames between 0 and n_frames of the clip's annotation",
    ProblemKind.SEGMENT_EMPTY: "end_frame is exclusive: it is larger than start_frame",
    ProblemKind.SEGMENT_ORDER: "sort segments by start_frame and let none overlap",
    ProblemKind.TOO_MANY_SEGMENTS: "join segments: there cannot be more than frames",
    ProblemKind.BAD_POSE: "save float32 (frames, 128, 3) with numpy.save, finite numbers alone",
    ProblemKind.MISSING_CLIP: "write a line for every clip of exam.json, also for hard ones",
}
"""What helps against each kind of problem."""


def missing_answers(seen: Observation) -> Iterator[Finding]:
    """Find answers that are absent or lie elsewhere."""
    elsewhere = tuple(map(shown, answers_elsewhere(seen)))
    others = tuple(f"/output/{shown(name)}" for name in seen.files if name != PREDICTIONS_FILE)
    if seen.outcome is not Outcome.NO_PREDICTIONS:
        if elsewhere and not seen.completed:
            yield _elsewhere(elsewhere, Certainty.LAST_WORDS)
        return
    if elsewhere or others:
        yield _elsewhere((*others, *elsewhere), Certainty.PROVEN)
        return
    last = seen.log.last_line()
    yield Finding(
        cause=Cause.NO_OUTPUT,
        certainty=Certainty.SAID,
        fact="it ended with exit code 0 and left /output empty",
        remedy=f"write {_EXPECTED}, and end with another exit code when something fails",
        details=(f"its last line: {last}",) if last else ("it wrote nothing to its log",),
    )


def _elsewhere(paths: tuple[str, ...], certainty: Certainty) -> Finding:
    return Finding(
        cause=Cause.OUTPUT_ELSEWHERE,
        certainty=certainty,
        fact=f"the answers are not in {_EXPECTED}, but there is another file",
        remedy=f"write them to {_EXPECTED}: this name, in this folder",
        details=paths[:_MOST_SHOWN],
    )


def unaccepted_output(seen: Observation) -> Iterator[Finding]:
    """Find what the collector does not take."""
    codes = [code for code in seen.diagnostics if code in _NOT_ACCEPTED]
    if seen.outcome is not Outcome.OUTPUT_LIMIT or not codes:
        return
    profile = seen.profile
    yield Finding(
        cause=Cause.OUTPUT_NOT_ACCEPTED,
        certainty=Certainty.PROVEN,
        fact=f"/output holds {_NOT_ACCEPTED[codes[0]]}, so nothing of it was taken",
        remedy=(
            "leave plain files with simple names there and no folders: at most "
            f"{profile.output_files} of {size_text(profile.output_file_bytes)} each"
        ),
        details=() if seen.violation is None else (seen.violation,),
    )


def invalid_predictions(seen: Observation) -> Iterator[Finding]:
    """Find what is wrong with the predictions, one finding for all problems of the file."""
    wrong = [problem for problem in seen.problems if problem.invalidates]
    if wrong:
        certainty = (
            Certainty.PROVEN if seen.outcome is Outcome.INVALID_PREDICTIONS else Certainty.POSSIBLE
        )
        kinds = list(dict.fromkeys(problem.kind for problem in wrong))
        more = (f"and {len(wrong) - _MOST_SHOWN} more",) if len(wrong) > _MOST_SHOWN else ()
        yield Finding(
            cause=Cause.INVALID_PREDICTIONS,
            certainty=certainty,
            fact=f"{PREDICTIONS_FILE} breaks the format: {', '.join(kinds)}",
            remedy="; ".join(REMEDIES[kind] for kind in kinds[:2]),
            details=(*(problem.message for problem in wrong[:_MOST_SHOWN]), *more),
        )
    missing = [problem for problem in seen.problems if not problem.invalidates]
    if missing and not wrong:
        proven = seen.outcome is Outcome.INVALID_PREDICTIONS
        yield Finding(
            cause=Cause.INCOMPLETE_PREDICTIONS,
            certainty=Certainty.PROVEN if proven else Certainty.POSSIBLE,
            fact=f"{PREDICTIONS_FILE} does not answer every clip",
            remedy=REMEDIES[ProblemKind.MISSING_CLIP],
            details=tuple(problem.message for problem in missing[:_MOST_SHOWN]),
        )
