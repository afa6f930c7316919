"""A synthetic exam with the published shape of the Épée 200 Qualifier, and a run on it.

Nobody outside holds the sealed labels. What the scorer says about its own uncertainty is shown
on this stand-in: the same counts of clips, positions, signs and errors, drawn by PCG64.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scorers.recognition.exam import ClipLabels, Position

# 71 signs with 606 tokens: 1 to 45 a sign, 6 at the median, 59 signs seen 3 times or more, 29
# seen 8 times or more, as published.
SUPPORTS = (
    *(45, 38, 32, 27, 23, 21, 19, 18, 17, 16, 15, 14, 13, 12, 12, 11, 11, 10, 10, 9, 9, 9),
    *(8,) * 7,
    *(7,) * 3,
    *(6,) * 5,
    *(5,) * 8,
    *(4,) * 8,
    *(3,) * 6,
    *(2,) * 6,
    *(1,) * 6,
)
CLIPS_BY_SIGNER = {"ALPHA": 39, "BRAVO": 39, "CHARLIE": 39, "DELTA": 39, "ECHO": 44}
HELD_OUT_SIGNER, HELD_OUT_TOKENS = "ECHO", 154
POSITIONS, FINGERSPELLED = 1098, 52
SHORTEST_CLIP = 3
OUTSIDE_GLOSSES = 260

WRONG_ON_SCORED, WRONG_OUTSIDE = 105, 28
NEVER_LEARNED = 3
RIGHT_OUTSIDE, FALSE_ALARMS = 26, 290


@dataclass(frozen=True, slots=True)
class SyntheticExam:
    """Labels, scored vocabulary and the held-out signer of one synthetic exam."""

    labels: tuple[ClipLabels, ...]
    vocabulary: tuple[str, ...]
    held_out_signer: str


def synthetic_exam(seed: int = 200) -> SyntheticExam:
    """Draw an exam of 200 clips: 606 tokens of 71 scored signs, 492 positions outside them."""
    generator = np.random.Generator(np.random.PCG64(seed))
    vocabulary = tuple(f"SIGN-{rank:02}" for rank in range(1, len(SUPPORTS) + 1))
    signers = [signer for signer, clips in CLIPS_BY_SIGNER.items() for _ in range(clips)]
    lengths = _clip_lengths(generator, len(signers))
    glosses = _place_glosses(generator, np.repeat(signers, lengths) == HELD_OUT_SIGNER, vocabulary)
    ends = np.cumsum(lengths).tolist()
    names = [f"{number:04}" for number in range(1, len(signers) + 1)]
    labels = tuple(
        ClipLabels(name, signer, tuple(glosses[end - length : end]))
        for name, signer, length, end in zip(names, signers, lengths.tolist(), ends, strict=True)
    )
    return SyntheticExam(labels, vocabulary, HELD_OUT_SIGNER)


def _clip_lengths(generator: np.random.Generator, clips: int) -> NDArray[np.int64]:
    """Share the positions out at random; shape (clips,), no clip shorter than three."""
    spare = POSITIONS - SHORTEST_CLIP * clips
    return SHORTEST_CLIP + np.bincount(generator.integers(0, clips, spare), minlength=clips)


def _place_glosses(
    generator: np.random.Generator, held_out: NDArray[np.bool_], vocabulary: tuple[str, ...]
) -> list[str]:
    tokens = np.repeat(vocabulary, SUPPORTS)
    theirs = generator.choice(np.flatnonzero(held_out), HELD_OUT_TOKENS, replace=False)
    others = generator.choice(
        np.flatnonzero(~held_out), tokens.size - HELD_OUT_TOKENS, replace=False
    )
    placed = _outside_glosses(generator, held_out.size)
    placed[np.concatenate([theirs, others])] = generator.permutation(tokens).astype(object)
    outside = np.setdiff1d(np.arange(held_out.size), np.concatenate([theirs, others]))
    for number, place in enumerate(generator.choice(outside, FINGERSPELLED, replace=False)):
        placed[place] = f"FS:NAME-{number:02}"
    return [str(gloss) for gloss in placed]


def _outside_glosses(generator: np.random.Generator, size: int) -> NDArray[np.object_]:
    """Draw glosses outside the vocabulary, the frequent ones first (Zipf); shape (size,)."""
    weights = 1 / np.arange(1, OUTSIDE_GLOSSES + 1)
    ranks = generator.choice(OUTSIDE_GLOSSES, size, p=weights / weights.sum())
    return np.array([f"OTHER-{rank:03}" for rank in ranks], dtype=object)


def synthetic_answers(exam: SyntheticExam, seed: int = 200) -> dict[str, tuple[Position, ...]]:
    """Answer the exam as the published row does: 473 of 606 right, 105 errors on another sign.

    Of the positions outside the vocabulary 26 are right and 290 are false alarms. Three signs
    are never right; harder signs fail more often. Confidences (two decimals, so with ties)
    separate right from wrong better than right from outside.
    """
    generator = np.random.Generator(np.random.PCG64([seed, 1]))
    labels = np.array([gloss for clip in exam.labels for gloss in clip.glosses], dtype=object)
    scored = np.isin(labels, exam.vocabulary)
    wrong = _wrong_places(generator, labels, scored, exam.vocabulary)
    given, taken_for = labels.copy(), _signs_instead(generator, labels, exam.vocabulary)
    on_scored, off_scored = np.split(generator.permutation(wrong), [WRONG_ON_SCORED])
    outside = generator.permutation(np.flatnonzero(~scored))
    alarms = outside[RIGHT_OUTSIDE : RIGHT_OUTSIDE + FALSE_ALARMS]
    elsewhere = np.concatenate([off_scored, outside[RIGHT_OUTSIDE + FALSE_ALARMS :]])
    given[on_scored], given[alarms] = taken_for[on_scored], taken_for[alarms]
    given[elsewhere] = "ELSEWHERE"
    confidence = _confidences(generator, given == labels, scored)
    second = np.where(generator.random(labels.size) < 0.4, labels, taken_for)
    positions = [
        Position((str(first), str(other)) if first != other else (str(first),), float(stated))
        for first, other, stated in zip(given, second, confidence, strict=True)
    ]
    ends = np.cumsum([len(clip.glosses) for clip in exam.labels]).tolist()
    return {
        clip.clip_id: tuple(positions[end - len(clip.glosses) : end])
        for clip, end in zip(exam.labels, ends, strict=True)
    }


def _wrong_places(
    generator: np.random.Generator,
    labels: NDArray[np.object_],
    scored: NDArray[np.bool_],
    vocabulary: tuple[str, ...],
) -> NDArray[np.int64]:
    """Choose 133 scored positions to be wrong, all those of three middling signs among them."""
    difficulty = dict(zip(vocabulary, generator.normal(0, 1, len(vocabulary)), strict=True))
    middling = len(vocabulary) // 3
    difficulty |= dict.fromkeys(vocabulary[middling : middling + NEVER_LEARNED], np.inf)
    places = np.flatnonzero(scored)
    hardness = np.array([difficulty[gloss] for gloss in labels[places]])
    hardness += generator.normal(0, 1, places.size)
    return places[np.argsort(-hardness, kind="stable")[: WRONG_ON_SCORED + WRONG_OUTSIDE]]


def _signs_instead(
    generator: np.random.Generator, labels: NDArray[np.object_], vocabulary: tuple[str, ...]
) -> NDArray[np.object_]:
    """Draw for each position a scored sign that is not its label, frequent signs more often."""
    order = {gloss: rank for rank, gloss in enumerate(vocabulary)}
    weights = np.sqrt(np.array(SUPPORTS, dtype=np.float64))
    drawn = generator.choice(len(vocabulary), labels.size, p=weights / weights.sum())
    own = np.array([order.get(gloss, -1) for gloss in labels])
    drawn = np.where(drawn == own, (drawn + 1) % len(vocabulary), drawn)
    return np.array(vocabulary, dtype=object)[drawn]


def _confidences(
    generator: np.random.Generator, right: NDArray[np.bool_], scored: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Draw logistic-normal confidences; the shifts give AUROC 0.81 and 0.73 on average."""
    shift = np.where(scored, np.where(right, 0.0, -1.24), -0.87)
    return np.round(
        1 / (1 + np.exp(-(1.0 + 1.2 * (generator.normal(0, 1, right.size) + shift)))), 2
    )
