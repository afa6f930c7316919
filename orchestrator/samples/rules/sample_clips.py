"""Draw the clips of a sample corpus: phrases, signers, movements. Seeded, pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from orchestrator.samples.rules.sample_bodies import SIGNERS, SignerStyle, body_frames, signer_style
from orchestrator.samples.rules.sample_signs import (
    REST,
    SCORED_GLOSSES,
    UNSCORED_GLOSSES,
    Floats,
    SignMovement,
    sign_movements,
)

MAX_SIGNS = 9
_REPEATS = 4
"""Each phrase is signed this often, by different people."""
_UNSCORED_SHARE = 0.08
_PLACE_NOISE = 0.055
"""How far a token's start and end lie from its gloss's, in image widths."""
_RESTING_STRETCH = 0.5


@dataclass(frozen=True, slots=True)
class SampleSegment:
    """One sign, half-open in frames."""

    gloss: str
    start_frame: int
    end_frame: int


@dataclass(frozen=True, slots=True)
class SampleClip:
    """One invented clip."""

    clip_id: str
    signer_id: str
    phrase_id: int
    part: int
    """0 to 3: which quarter of the corpus; a phrase stands once in each."""
    fps: float
    text_en: str
    segments: tuple[SampleSegment, ...]
    keypoints: NDArray[np.float32]
    """(frames, 128, 3)."""


def draw_clips(
    clips: int, *, seed: int, prefix: str = "sample", signers: Sequence[str] = SIGNERS
) -> Iterator[SampleClip]:
    """Yield `clips` invented clips; the same arguments give the same bytes."""
    rng = np.random.default_rng([seed, clips])
    phrases = _draw_phrases(-(-clips // _REPEATS), rng)
    for number in range(clips):
        part, phrase_id = divmod(number, len(phrases))
        signer = signers[(phrase_id + part) % len(signers)]
        clip = _Task(f"{prefix}_{number + 1:04d}", signer, phrase_id + 1, part)
        yield _draw_clip(clip, phrases[phrase_id], rng)


def _draw_phrases(count: int, rng: np.random.Generator) -> list[tuple[str, ...]]:
    """Return distinct phrases of 1 to 9 signs in which every scored gloss comes up in turn."""
    phrases: dict[tuple[str, ...], None] = {}
    waiting: list[str] = []
    while len(phrases) < count:
        glosses: list[str] = []
        for _ in range(int(rng.integers(1, MAX_SIGNS + 1))):
            if rng.random() < _UNSCORED_SHARE:
                glosses.append(str(rng.choice(UNSCORED_GLOSSES)))
                continue
            if not waiting:
                waiting = list(rng.permutation(SCORED_GLOSSES))
            glosses.append(str(waiting.pop()))
        phrases[tuple(glosses)] = None
    return list(phrases)


def sentence(glosses: Sequence[str]) -> str:
    """Return the invented English of a phrase."""
    words = " ".join(gloss.lower().replace("-", " ") for gloss in glosses)
    return words.capitalize() + ("?" if {"WHO", "HOW"} & set(glosses) else ".")


@dataclass(frozen=True, slots=True)
class _Task:
    clip_id: str
    signer: str
    phrase_id: int
    part: int


def _draw_clip(task: _Task, glosses: tuple[str, ...], rng: np.random.Generator) -> SampleClip:
    style = signer_style(task.signer)
    fps = 25.0 if rng.random() < 0.5 else 30.0
    segments = _draw_times(glosses, fps, style, rng)
    n_frames = segments[-1].end_frame + int(fps * rng.uniform(0.3, 0.6))
    wrists = np.repeat((REST + style.offset)[None], n_frames, axis=0)
    stretch = np.full((n_frames, 2, 5), _RESTING_STRETCH)
    for segment in segments:
        place = slice(segment.start_frame, segment.end_frame)
        movement = sign_movements()[segment.gloss]
        frames = segment.end_frame - segment.start_frame
        wrists[place] = _perform(movement, frames, style, rng)
        stretch[place, 1] = movement.handshape
        if movement.two_handed:
            stretch[place, 0] = movement.handshape
    _join(wrists, segments)
    turn = style.turn + 0.6 * wrists[..., 0]
    return SampleClip(
        clip_id=task.clip_id,
        signer_id=task.signer,
        phrase_id=task.phrase_id,
        part=task.part,
        fps=fps,
        text_en=sentence(glosses),
        segments=segments,
        keypoints=body_frames(wrists, stretch, turn, style, rng),
    )


def _draw_times(
    glosses: Sequence[str], fps: float, style: SignerStyle, rng: np.random.Generator
) -> tuple[SampleSegment, ...]:
    at = int(fps * rng.uniform(0.3, 0.6))
    segments = []
    for gloss in glosses:
        end = at + max(6, int(fps * rng.uniform(0.45, 0.9) * style.tempo))
        segments.append(SampleSegment(gloss, at, end))
        at = end + int(fps * rng.uniform(0.25, 0.5))
    return tuple(segments)


def _perform(
    movement: SignMovement, frames: int, style: SignerStyle, rng: np.random.Generator
) -> Floats:
    progress = np.linspace(0.0, 1.0, frames)
    drift = rng.normal(0.0, _PLACE_NOISE, (2, 2, 3))
    along = progress[:, None, None]
    noisy = movement.wrists(progress) + (1 - along) * drift[0] + along * drift[1]
    performed: Floats = noisy * style.reach + style.offset
    return performed


def _join(wrists: Floats, segments: Sequence[SampleSegment]) -> None:
    """Move the hands down towards rest and up again between two signs."""
    for before, after in pairwise(segments):
        first, last = before.end_frame - 1, after.start_frame
        share = np.linspace(0.0, 1.0, last - first + 1)[:, None, None]
        straight = (1 - share) * wrists[first] + share * wrists[last]
        low = np.sin(np.pi * share) * 0.8
        wrists[first : last + 1] = (1 - low) * straight + low * REST
