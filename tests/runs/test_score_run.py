"""Scoring retained predictions: cards, their evidence, and a kill at any moment."""

from __future__ import annotations

import base64
import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from manifests.digests import sha256_hex
from manifests.errors import ClaimDoesNotHold, PlatformFault, RefusedByPolicy
from manifests.outcomes import Outcome
from manifests.statements import RunScored, RunVoided, Statement
from orchestrator.board.rescore import rescore
from orchestrator.editions.labels_add import LabelTools, add_labels
from orchestrator.editions.sealed_editions import load_sealed_edition
from orchestrator.keys.sealing_port import IdentityMissing, Purpose
from orchestrator.runs.score_run import score_run
from orchestrator.runs.signed_folder import is_signed, sign_folder
from orchestrator.wiring import workspaces as wiring
from orchestrator.workspace.workspace import Workspace
from tests.support.small_exams import (
    glosses_of,
    new_workspace,
    opaque_names,
    predictions,
    recognition_answers,
    reference_of,
    register,
    retain_run,
    seal_edition,
    write_labels,
)

FINAL = "synthetic-final"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    opened = new_workspace(tmp_path / "workspace")
    seal_edition(opened, tmp_path / "edition", FINAL)
    register(opened, "nova")
    return opened


@pytest.fixture
def run_id(workspace: Workspace) -> str:
    data = predictions(workspace, FINAL, recognition_answers(wrong=2))
    return retain_run(workspace, FINAL, "nova", data)


def rows(workspace: Workspace, run_id: str) -> list[RunScored]:
    entries = workspace.ledger.entries(run_id=run_id, kind="run-scored")
    return [entry.statement for entry in entries if isinstance(entry.statement, RunScored)]


def add_version(workspace: Workspace, folder: Path, version: str = "labels-v2") -> None:
    path = folder / f"{version}.jsonl"
    write_labels(path, "recognition", {0: {"glosses": ["NOW", "NOW", "NOW"]}})
    tools = LabelTools(
        store=workspace.store,
        ledger=workspace.ledger,
        sealer=workspace.sealer,
        unsealer=workspace.keyring.unsealer(Purpose.LABELS),
        clock=workspace.clock,
    )
    add_labels(FINAL, version, path.read_bytes(), source=str(path), note="", tools=tools)


def kill_at(workspace: Workspace, step: str) -> Workspace:
    """Return the workspace with a ledger or a store that dies at `step`."""

    class Dying:
        def __init__(self, inner: object) -> None:
            self._inner = inner

        def __getattr__(self, name: str) -> object:
            if name == step:
                raise PlatformFault("the power went out")
            return getattr(self._inner, name)

    if step == "decide":
        return replace(workspace, ledger=Dying(workspace.ledger))  # type: ignore[arg-type]
    return replace(workspace, store=Dying(workspace.store))  # type: ignore[arg-type]


def test_a_run_gets_a_public_and_a_private_card_and_a_row_with_the_boards_figures(
    workspace: Workspace, run_id: str
) -> None:
    card = score_run(workspace, run_id)
    public = workspace.store.read(f"runs/{run_id}/score.json")
    private = workspace.store.read(f"runs/{run_id}/score.private.json")
    (row,) = rows(workspace, run_id)
    assert (row.public_sha256, row.private_sha256) == (sha256_hex(public), sha256_hex(private))
    assert row.figures["macro_f1"] == card.public["macro_f1"]
    assert row.figures["top1"] == pytest.approx(10 / 12)
    assert row.complete
    assert "private" not in json.loads(public)
    assert set(json.loads(private)["private"]) >= {"by_sign", "confusion"}
    assert (workspace.store.root / f"runs/{run_id}/score.private.json").stat().st_mode & 0o77 == 0


def test_the_card_names_the_versions_that_it_rests_on(workspace: Workspace, run_id: str) -> None:
    provenance = score_run(workspace, run_id).provenance
    assert provenance["exam_version"] == "1.0"
    assert provenance["docker"] == "28.5.2"
    assert str(provenance["image"]).startswith("sha256:")
    assert provenance["predictions_sha256"] == sha256_hex(
        workspace.store.read(f"runs/{run_id}/predictions.jsonl")
    )
    for name in ("clip_set_sha256", "labels_sha256"):
        assert len(str(provenance[name])) == 64


def test_scoring_twice_appends_one_row_and_changes_no_byte(
    workspace: Workspace, run_id: str
) -> None:
    score_run(workspace, run_id)
    before = workspace.store.read(f"runs/{run_id}/score.json")
    score_run(workspace, run_id)
    assert len(rows(workspace, run_id)) == 1
    assert workspace.store.read(f"runs/{run_id}/score.json") == before
    assert not workspace.store.exists(f"runs/{run_id}/scores")


@pytest.mark.parametrize("step", ["decide", "replace"])
def test_a_scoring_that_was_killed_is_done_again(
    workspace: Workspace, run_id: str, step: str
) -> None:
    with pytest.raises(PlatformFault, match="power"):
        score_run(kill_at(workspace, step), run_id)
    assert rows(workspace, run_id) == []
    score_run(workspace, run_id)
    (row,) = rows(workspace, run_id)
    assert sha256_hex(workspace.store.read(f"runs/{run_id}/score.json")) == row.public_sha256


def test_a_lost_card_of_a_recorded_row_is_put_back_with_the_same_bytes(
    workspace: Workspace, run_id: str
) -> None:
    score_run(workspace, run_id)
    workspace.store.remove(f"runs/{run_id}/score.private.json")
    workspace.store.replace(f"runs/{run_id}/score.json", b"{}")
    score_run(workspace, run_id)
    (row,) = rows(workspace, run_id)
    for name, digest in (
        ("score.json", row.public_sha256),
        ("score.private.json", row.private_sha256),
    ):
        assert sha256_hex(workspace.store.read(f"runs/{run_id}/{name}")) == digest


def test_another_label_version_makes_a_row_of_its_own_in_a_signed_folder(
    workspace: Workspace, run_id: str, tmp_path: Path
) -> None:
    score_run(workspace, run_id)
    old = workspace.store.read(f"runs/{run_id}/score.json")
    add_version(workspace, tmp_path)
    card = score_run(workspace, run_id, "labels-v2")
    assert card.labels_version == "labels-v2"
    assert [row.labels.version for row in rows(workspace, run_id)] == ["labels-v1", "labels-v2"]
    assert workspace.store.read(f"runs/{run_id}/score.json") == old
    folder = workspace.store.root / f"runs/{run_id}/scores/labels-v2"
    for sums in ("SHA256SUMS", "private.sha256"):
        subprocess.run(["sha256sum", "-c", "--strict", sums], cwd=folder, check=True)
    signature = tmp_path / "signature"
    signature.write_bytes(base64.b64decode((folder / "SHA256SUMS.sig").read_bytes()))
    checked = subprocess.run(
        [
            *["openssl", "dgst", "-sha256", "-verify", "scorer.pub", "-signature"],
            signature,
            "SHA256SUMS",
        ],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
    )
    assert checked.stdout == "Verified OK\n"
    assert "score.private.json" not in (folder / "SHA256SUMS").read_text()


def test_a_folder_whose_evidence_is_signed_is_never_written_to_again(
    workspace: Workspace, run_id: str
) -> None:
    folder = f"runs/{run_id}"
    digest = sha256_hex(workspace.store.read(f"{folder}/predictions.jsonl"))
    sign_folder(workspace, folder, {"predictions.jsonl": digest}, role="run")
    before = workspace.store.list_names(folder)
    score_run(workspace, run_id)
    assert set(workspace.store.list_names(folder)) - set(before) == {"scores"}
    (row,) = rows(workspace, run_id)
    cards = {"score.json": row.public_sha256, "score.private.json": row.private_sha256}
    assert is_signed(workspace, f"{folder}/scores/labels-v1", cards, role="scorer")


def test_a_signed_score_folder_that_was_touched_is_seen_and_repaired(
    workspace: Workspace, run_id: str, tmp_path: Path
) -> None:
    add_version(workspace, tmp_path)
    score_run(workspace, run_id, "labels-v2")
    (row,) = rows(workspace, run_id)
    cards = {"score.json": row.public_sha256, "score.private.json": row.private_sha256}
    folder = f"runs/{run_id}/scores/labels-v2"
    for name in ("SHA256SUMS", "SHA256SUMS.sig", "private.sha256", "scorer.pub"):
        workspace.store.replace(f"{folder}/{name}", b"changed\n")
        assert not is_signed(workspace, folder, cards, role="scorer"), name
        score_run(workspace, run_id, "labels-v2")
        assert is_signed(workspace, folder, cards, role="scorer"), name
    assert len(rows(workspace, run_id)) == 1


def test_predictions_that_are_not_the_recorded_ones_are_never_scored(
    workspace: Workspace, run_id: str
) -> None:
    workspace.store.replace(f"runs/{run_id}/predictions.jsonl", b"{}\n")
    with pytest.raises(ClaimDoesNotHold, match="was recorded"):
        score_run(workspace, run_id)
    assert rows(workspace, run_id) == []


def test_only_a_completed_run_is_scored(workspace: Workspace) -> None:
    data = predictions(workspace, FINAL, recognition_answers(0))
    timed_out = retain_run(workspace, FINAL, "nova", data, outcome=Outcome.TIMED_OUT)
    with pytest.raises(RefusedByPolicy, match="timed-out; only a completed run"):
        score_run(workspace, timed_out)
    voided = retain_run(workspace, FINAL, "nova", data)
    statement: Statement = RunVoided(
        at=workspace.clock.now(),
        run_id=voided,
        edition=FINAL,
        team="nova",
        reason="wrong image",
        by="organizer",
    )
    workspace.ledger.append(statement)
    with pytest.raises(RefusedByPolicy, match="is voided"):
        score_run(workspace, voided)
    with pytest.raises(RefusedByPolicy, match="not in the ledger"):
        score_run(workspace, "0" * 16)


def test_a_host_without_the_label_identity_refuses_and_another_scores_later(
    workspace: Workspace, run_id: str
) -> None:
    identity = workspace.store.root / "keys/labels.agekey"
    kept = identity.read_bytes()
    identity.unlink()
    with pytest.raises(IdentityMissing):
        score_run(wiring.open_workspace(workspace.store.root), run_id)
    assert rows(workspace, run_id) == []
    identity.write_bytes(kept)
    identity.chmod(0o600)
    (rescored,) = rescore(workspace, FINAL)
    assert (rescored.run_id, rescored.known) == (run_id, False)
    assert len(rows(workspace, run_id)) == 1


def test_rescore_takes_every_completed_run_once_and_leaves_old_rows(
    workspace: Workspace, run_id: str, tmp_path: Path
) -> None:
    data = predictions(workspace, FINAL, recognition_answers(1))
    failed = retain_run(workspace, FINAL, "nova", data, outcome=Outcome.OUT_OF_MEMORY)
    other = retain_run(workspace, FINAL, "nova", data)
    score_run(workspace, run_id)
    before = rows(workspace, run_id)
    add_version(workspace, tmp_path)
    first = rescore(workspace, FINAL, "labels-v2")
    size = workspace.ledger.size()
    again = rescore(workspace, FINAL, "labels-v2")
    assert [(one.run_id, one.known) for one in first] == [(run_id, False), (other, False)]
    assert [one.known for one in again] == [True, True]
    assert workspace.ledger.size() == size
    assert rows(workspace, run_id)[:1] == before
    assert rows(workspace, failed) == []


def test_labels_that_were_never_committed_are_refused_by_name(
    workspace: Workspace, run_id: str
) -> None:
    with pytest.raises(RefusedByPolicy, match="no labels labels-v9; the versions are: labels-v1"):
        score_run(workspace, run_id, "labels-v9")


def as_clips_are(workspace: Workspace, edition: str, data: bytes) -> bytes:
    """Seal a pose as a run keeps it: to the recipients of the edition's clips."""
    sealed = load_sealed_edition(edition, store=workspace.store, ledger=workspace.ledger)
    return workspace.sealer.seal(data, sealed.seal.recipients.clips)


def test_a_translation_run_is_compared_with_the_sealed_poses_and_a_missing_one_is_0(
    workspace: Workspace, tmp_path: Path
) -> None:
    seal_edition(workspace, tmp_path / "translation", "signet-final", track="translation")
    names = opaque_names(workspace, "signet-final")
    data = predictions(workspace, "signet-final", lambda n: {"text": reference_of(n)})
    keypoints = tmp_path / "translation/clips/keypoints"
    clips = {
        f"pose/{names[n]}.npy.age": as_clips_are(
            workspace, "signet-final", (keypoints / f"clip_{n:02d}.npy").read_bytes()
        )
        for n in (0, 1)
    }
    run = retain_run(workspace, "signet-final", "nova", data, files=clips)
    public = score_run(workspace, run).public
    assert public["s_pose"] == pytest.approx(2 / 4)
    assert public["chrf"] == pytest.approx(1)
    assert public["s_total"] is None
    (row,) = rows(workspace, run)
    assert row.figures["s_total"] is None
    assert row.figures["s_pose"] == pytest.approx(2 / 4)


def test_a_retained_pose_that_was_changed_is_not_scored(
    workspace: Workspace, tmp_path: Path
) -> None:
    seal_edition(workspace, tmp_path / "translation", "signet-final", track="translation")
    names = opaque_names(workspace, "signet-final")
    data = predictions(workspace, "signet-final", lambda n: {"text": reference_of(n)})
    keypoints = tmp_path / "translation/clips/keypoints"
    pose, other = (
        as_clips_are(workspace, "signet-final", (keypoints / f"clip_0{n}.npy").read_bytes())
        for n in (0, 1)
    )
    name = f"pose/{names[0]}.npy.age"
    run = retain_run(workspace, "signet-final", "nova", data, files={name: pose})
    workspace.store.replace(f"runs/{run}/{name}", other)
    with pytest.raises(ClaimDoesNotHold, match="was recorded"):
        score_run(workspace, run)


def test_a_segmentation_run_is_scored_with_the_answers_of_the_frozen_consumer(
    workspace: Workspace, tmp_path: Path
) -> None:
    edition = "segments-final"
    seal_edition(workspace, tmp_path / "segmentation", edition, track="segmentation")
    spans = [{"start_frame": 10 * i, "end_frame": 10 * i + 8} for i in range(3)]
    data = predictions(workspace, edition, lambda _: {"segments": spans})
    consumer = predictions(workspace, edition, lambda n: {"signs": glosses_of(n)})
    run = retain_run(workspace, edition, "nova", data, files={"consumer.jsonl": consumer})
    public = score_run(workspace, run).public
    assert public["mf1s"] == pytest.approx(1)
    assert public["all_reference_accuracy"] == pytest.approx(1)
    (row,) = rows(workspace, run)
    assert row.figures["wer_iv"] == 0
    assert row.figures["mf1s_floor"] == pytest.approx(0)
    without = retain_run(workspace, edition, "nova", data)
    assert score_run(workspace, without).public["all_reference_accuracy"] is None


def test_a_checkpoint_that_the_edition_needs_is_asked_for_and_not_left_out(
    workspace: Workspace, tmp_path: Path
) -> None:
    seal_edition(
        workspace,
        tmp_path / "translation",
        "signet-final",
        track="translation",
        extra="bleurt: {checkpoint: checkpoints/BLEURT-20}\n",
    )
    data = predictions(workspace, "signet-final", lambda n: {"text": reference_of(n)})
    run = retain_run(workspace, "signet-final", "nova", data)
    with pytest.raises(RefusedByPolicy, match="checkpoints/BLEURT-20"):
        score_run(workspace, run)
    assert rows(workspace, run) == []
