"""Single changes to a run's folder, signed anew by somebody with a key: each found, and by the right check."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.evidence.rules.catalogue import Check
from tests.support.bundle_edits import (
    Files,
    pack,
)
from tests.support.bundle_story import (
    Story,
    doubled_key,
    shared,
    signed_by_foreigner,
    signed_by_retired,
    signed_by_scorer,
    with_envelope,
)
from tests.support.synthetic_evidence import (
    failed,
    verify,
)


@pytest.fixture(scope="module")
def story() -> Story:
    return shared()


Tamper = Callable[[Story], Files]

TAMPERS: dict[str, tuple[Check, Tamper]] = {
    # a run, signed anew
    "a run signed anew by a foreign key": (Check.SIGNATURE, signed_by_foreigner),
    "a run signed anew by the scorer's key": (Check.SIGNATURE, signed_by_scorer),
    "a run signed by a key that was retired": (Check.SIGNATURE, signed_by_retired),
    "a card's digit, signed anew": (
        Check.CARD,
        lambda s: s.insider_json("second", "score.json", lambda d: d["public"].update(top1=0.99)),
    ),
    "a key twice in a card, signed anew": (
        Check.CARD,
        lambda s: s.insider(
            "second", "score.json", doubled_key(s.files[s.run("second", "score.json")], "labels")
        ),
    ),
    "an image's digest, signed anew": (
        Check.IDENTITY,
        lambda s: s.insider_json(
            "second", "run.json", lambda d: d["image"].update(config_digest="sha256:" + "0" * 64)
        ),
    ),
    "a profile's digest, signed anew": (
        Check.RECORD,
        lambda s: s.insider_json("second", "run.json", lambda d: d.update(profile_sha256="0" * 64)),
    ),
    "the run's number, signed anew": (
        Check.RECORD,
        lambda s: s.insider_json("second", "run.json", lambda d: d.update(certified_run=1)),
    ),
    "a void hidden, signed anew": (
        Check.RECORD,
        lambda s: s.insider_json(
            "voided", "run.json", lambda d: d.update(voided=None, certified_run=2)
        ),
    ),
    "predictions, signed anew": (
        Check.KEPT,
        lambda s: s.insider(
            "second", "predictions.jsonl", s.files[s.run("first", "predictions.jsonl")]
        ),
    ),
    "the effective configuration, signed anew": (
        Check.KEPT,
        lambda s: s.insider_json("second", "effective.json", lambda d: d.update(Privileged=True)),
    ),
    "a file that the log does not know, signed": (
        Check.KEPT,
        lambda s: s.insider("second", "more.txt", b"more\n"),
    ),
    "a subject dropped, signed anew": (
        Check.ENVELOPE,
        lambda s: with_envelope(s, lambda d: d["subject"].pop()),
    ),
    "a subject's digest, signed anew": (
        Check.ENVELOPE,
        lambda s: with_envelope(s, lambda d: d["subject"][0]["digest"].update(sha256="0" * 64)),
    ),
    "a predicate's team, signed anew": (
        Check.ENVELOPE,
        lambda s: with_envelope(
            s,
            lambda d: d["predicate"]["buildDefinition"]["externalParameters"].update(team="lumen"),
        ),
    ),
    "another type of predicate, signed anew": (
        Check.ENVELOPE,
        lambda s: with_envelope(
            s, lambda d: d.update(predicateType="https://slsa.dev/provenance/v1")
        ),
    ),
}


@pytest.mark.parametrize("name", TAMPERS)
def test_a_change_is_found_by_the_check_that_is_meant_for_it(
    name: str, story: Story, tmp_path: Path
) -> None:
    check, tamper = TAMPERS[name]
    changed = tamper(story)
    assert changed != story.files
    report = verify(pack(changed, tmp_path / "bundle.tar"))
    assert check in failed(report)
    assert not report.holds
