"""The card that every exam returns."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from scorers.cards import NotComputed, ScoreCard, section


def _card(**changes: Any) -> ScoreCard:
    fields: dict[str, Any] = {
        "track": "recognition",
        "scorer_name": "epee200",
        "scorer_version": "2.1",
        "scorer_string": "epee200|version:2.1",
        "labels_version": "labels-v1",
        "complete": True,
        "public": section({"top1": 0.5}),
        "private": section({"by_sign": {"YOU": {"f1": 1.0}}}),
    }
    return ScoreCard(**(fields | changes))


def test_the_public_document_never_holds_the_private_section() -> None:
    document = _card().public_document()
    assert "private" not in document
    assert "YOU" not in json.dumps(document)


def test_the_whole_document_has_the_published_keys() -> None:
    assert _card().as_document() == {
        "track": "recognition",
        "scorer": {"name": "epee200", "version": "2.1", "string": "epee200|version:2.1"},
        "labels": "labels-v1",
        "complete": True,
        "public": {"top1": 0.5},
        "private": {"by_sign": {"YOU": {"f1": 1.0}}},
    }


def test_provenance_stands_on_the_card_when_there_is_any() -> None:
    assert "provenance" not in _card().as_document()
    document = _card(provenance={"image": "sha256:00"}).public_document()
    assert document["provenance"] == {"image": "sha256:00"}


def test_a_figure_that_cannot_be_computed_is_null_with_its_reason() -> None:
    figures = section({"top1": NotComputed("no scored position"), "ger": 0.5})
    assert figures == {"top1": None, "ger": 0.5, "reasons": {"top1": "no scored position"}}


def test_the_reason_of_a_nested_figure_stands_under_its_path() -> None:
    figures = section({"abstention": {"aurc": NotComputed("nothing"), "curve": [0.5]}})
    assert figures["reasons"] == {"abstention.aurc": "nothing"}
    assert figures["abstention"] == {"aurc": None, "curve": [0.5]}


def test_numpy_scalars_become_python_numbers() -> None:
    figures = section({"a": np.float64(0.5), "b": np.int64(3), "c": np.bool_(True), "d": (1, 2)})
    assert [type(figures[name]) for name in "abcd"] == [float, int, bool, list]
    assert json.loads(json.dumps(figures)) == {"a": 0.5, "b": 3, "c": True, "d": [1, 2]}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), np.float64("-inf")])
def test_a_number_that_is_not_finite_never_reaches_a_card(value: float) -> None:
    with pytest.raises(ValueError, match="top1"):
        section({"top1": value})


def test_a_value_that_json_cannot_write_is_refused() -> None:
    with pytest.raises(TypeError, match="figure top1 is a complex"):
        section({"top1": 1j})  # type: ignore[dict-item] # what a careless scorer might pass


def test_changing_a_document_leaves_the_card_as_it_was() -> None:
    card = _card()
    card.as_document()["private"]["by_sign"]["YOU"]["f1"] = 0.0
    assert card.as_document()["private"]["by_sign"]["YOU"]["f1"] == 1.0
