"""The one way from documents to a card: gloss maps, pinned parameters, expectations."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from manifests.editions import Edition, Track, parse_edition
from manifests.errors import MalformedDocument, RefusedByPolicy
from manifests.labels import Labels, parse_labels
from orchestrator.scoring.rules.scoring import (
    MAIN_FIGURE,
    ScoringTask,
    default_parameters,
    edition_parameters,
    expectation,
    score,
    scored_vocabulary,
    scorer_version,
)
from scorers.recognition import RecognitionParameters
from scorers.translation import TranslationParameters

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TRACKS: tuple[Track, ...] = ("recognition", "translation", "segmentation")


def labels_of(track: Track) -> Labels:
    data = (EXAMPLES / track / "labels-v1.jsonl").read_bytes()
    return parse_labels(data, track=track, source="labels-v1.jsonl")


def recognition(signs: dict[str, list[str]], glosses: dict[str, list[str]]) -> ScoringTask:
    labels = [{"clip_id": c, "signer_id": "ALPHA", "glosses": g} for c, g in glosses.items()]
    answers = [{"clip_id": c, "signs": s} for c, s in signs.items()]
    return ScoringTask(
        labels=parse_labels(_lines(labels), track="recognition", source="labels"),
        parameters=RecognitionParameters(resamples=100),
        predictions=_lines(answers),
        vocabulary=("OLD", "WHO", "WHO_2"),
    )


def _lines(rows: Sequence[Mapping[str, object]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def test_variants_stay_apart_unless_the_edition_maps_them() -> None:
    task = recognition({"a": ["WHO_2", "OLD"]}, {"a": ["WHO", "OLD"]})
    assert score(task).public["top1"] == 0.5
    mapped = replace(task, gloss_map={"WHO_2": "WHO"})
    assert score(mapped).public["top1"] == 1
    assert scored_vocabulary(task) == ("OLD", "WHO", "WHO_2")
    assert scored_vocabulary(mapped) == ("OLD", "WHO")


def test_a_map_applies_to_labels_too_and_candidates_that_become_equal_count_once() -> None:
    task = recognition({"a": ["WHO", "OLD"]}, {"a": ["WHO_2", "OLD"]})
    mapped = replace(task, gloss_map={"WHO_2": "WHO"})
    assert score(mapped).public["top1"] == 1
    ranked = {"clip_id": "a", "signs": [{"candidates": ["WHO", "WHO_2", "OLD"]}, "OLD"]}
    again = replace(mapped, predictions=_lines([ranked]))
    assert score(again).public["top3"] == 1


def edition(track: Track, scorer: str, extra: str = "") -> Edition:
    vocabulary = "" if track == "translation" else "vocabulary: vocabulary.txt\n"
    if track == "segmentation":
        extra += f"consumer: registry.example.org/recognizer@sha256:{'ab' * 32}\n"
    document = f"""
edition: exam-2026
title: Exam
track: {track}
round: final
exam_version: "1.0"
layout: clerc-128
source: clips
expected_clips: 4
{vocabulary}labels: {{version: labels-v1, path: labels.jsonl}}
profile: certified
scorer: {scorer}
opens: 2026-12-01T00:00:00Z
closes: 2027-03-01T00:00:00Z
organizer: {{name: CLERC, contact: organizers@example.org}}
{extra}"""
    return parse_edition(document.encode(), source="edition.yaml")


def test_an_edition_pins_seed_resamples_and_the_held_out_signer() -> None:
    found = edition_parameters(
        edition(
            "recognition",
            '{name: epee200, version: "2.1", resamples: 250, seed: 7}',
            "held_out_signer: ECHO\n",
        ),
        "labels-v2",
    )
    expected = RecognitionParameters(
        resamples=250, seed=7, held_out_signer="ECHO", labels_version="labels-v2"
    )
    assert found == expected


def test_an_edition_pins_the_gate_and_the_derangements_key() -> None:
    scorer = '{name: signet, version: "1.0", gate_threshold: 1.8, derangement_key: salt}'
    found = edition_parameters(edition("translation", scorer), "labels-v1")
    assert found == TranslationParameters(gate_threshold=1.8, derangement_key="salt")


def test_without_resamples_the_scorers_own_number_holds() -> None:
    scorer = '{name: consumer-aware, version: "1.0"}'
    found = edition_parameters(edition("segmentation", scorer), "labels-v1")
    assert found == default_parameters("segmentation")


@pytest.mark.parametrize("track", TRACKS)
def test_another_scorer_version_is_refused_with_both_versions(track: Track) -> None:
    names = {"recognition": "epee200", "translation": "signet", "segmentation": "consumer-aware"}
    pinned = edition(track, f'{{name: {names[track]}, version: "0.9"}}')
    held = scorer_version(track)
    with pytest.raises(RefusedByPolicy, match=rf"0\.9, but this piste holds {held}"):
        edition_parameters(pinned, "labels-v1")


@pytest.mark.parametrize("track", TRACKS)
def test_a_label_tells_what_its_clips_predictions_are_checked_against(track: Track) -> None:
    for label in labels_of(track).entries:
        found = expectation(label)
        if track == "recognition":
            assert found.n_segments is not None
        if track == "segmentation":
            assert found.n_frames is not None
        if track == "translation":
            assert (found.n_segments, found.n_frames) == (None, None)


@pytest.mark.parametrize("track", TRACKS)
def test_the_ranking_figure_of_each_track_is_on_its_card(track: Track) -> None:
    task = ScoringTask(
        labels=labels_of(track),
        parameters=default_parameters(track),
        predictions=b"",
        vocabulary=("WHO",),
    )
    card = score(task)
    assert card.complete is False
    assert card.public[MAIN_FIGURE[track]] is None


def test_a_consumer_is_not_read_where_a_clip_has_no_prediction() -> None:
    folder = EXAMPLES / "segmentation"
    predictions = (folder / "baseline.predictions.jsonl").read_bytes().splitlines(keepends=True)
    task = ScoringTask(
        labels=labels_of("segmentation"),
        parameters=default_parameters("segmentation"),
        predictions=b"".join(predictions[1:]),
        consumer=(folder / "baseline.consumer.jsonl").read_bytes(),
    )
    card = score(task)
    assert card.complete is False
    reasons = card.public["reasons"]
    assert isinstance(reasons, dict)
    assert "the predictions lack 1 of 24 clips" in reasons["mf1s"]
    whole = replace(task, predictions=b"".join(predictions), consumer=b"nonsense\n")
    with pytest.raises(MalformedDocument, match=r"consumer\.jsonl:1"):
        score(whole)
