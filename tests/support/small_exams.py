"""A small workspace on disk with sealed editions and made-up runs, for benchmarks and tests."""

from __future__ import annotations

import io
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import numpy as np

from manifests.digests import sha256_hex
from manifests.editions import SCORER_OF_TRACK, Track
from manifests.encoding import canonical_json
from manifests.outcomes import Outcome
from manifests.statements import RunFinished, RunReserved, RunStarted
from orchestrator.editions.open_labels import open_names
from orchestrator.editions.sealed_editions import load_sealed_edition
from orchestrator.keys.sealing_port import Purpose
from orchestrator.scoring.rules.scoring import scorer_version
from orchestrator.support.reporter import SilentReporter
from orchestrator.wiring import workspaces as wiring
from orchestrator.workspace.add_team import add_team
from orchestrator.workspace.workspace import Workspace
from tests.support.synthetic_ledger import image_identity

DATES = ("2026-12-01", "2027-03-01")
NOW = datetime(2026, 12, 15, 12, tzinfo=UTC)
GLOSSES = ("YOU", "OLD", "WORK", "NOW")
CLIPS = 6
SIGNS = 3
FRAMES = 30
FPS = 10.0
SLICES = ("studio", "studio", "broadcast", "broadcast", "canary", "canary")
WORDS = ("red", "green", "blue", "warm", "cold", "tall")


@dataclass(slots=True)
class SetClock:
    """A clock that a test sets."""

    moment: datetime = NOW

    def now(self) -> datetime:
        return self.moment

    def monotonic(self) -> float:
        return self.moment.timestamp()


def new_workspace(root: Path, clock: SetClock | None = None) -> Workspace:
    """Return a new workspace in `root`, with real keys and a real ledger."""
    wiring.create_workspace(root, origin="example.org/test")
    return replace(wiring.open_workspace(root), clock=clock or SetClock())


def clip_name(number: int) -> str:
    return f"clip_{number:02d}"


def glosses_of(number: int) -> list[str]:
    """Return the true glosses of a clip, the last one outside the vocabulary."""
    return [GLOSSES[(number + i) % len(GLOSSES)] for i in range(SIGNS - 1)] + ["LONDON"]


def reference_of(number: int) -> str:
    return f"the {WORDS[number]} house stands near {WORDS[(number + 1) % CLIPS]} water today"


def _segments(number: int) -> list[dict[str, object]]:
    return [
        {"gloss": gloss, "start": float(place), "end": place + 0.8}
        for place, gloss in enumerate(glosses_of(number))
    ]


def _label(track: Track, number: int) -> dict[str, object]:
    signer = {"clip_id": clip_name(number), "signer_id": f"SIGNER{number % 3}"}
    if track == "recognition":
        return signer | {"glosses": glosses_of(number)}
    if track == "segmentation":
        return signer | {"fps": FPS, "n_frames": FRAMES, "segments": _segments(number)}
    return {
        "clip_id": clip_name(number),
        "slice": SLICES[number],
        "reference": reference_of(number),
    }


def write_labels(
    path: Path, track: Track, changed: Mapping[int, dict[str, object]] | None = None
) -> None:
    """Write the labels of all clips; `changed` gives other fields for some."""
    rows = [_label(track, n) | (changed or {}).get(n, {}) for n in range(CLIPS)]
    path.write_bytes(b"".join(canonical_json(row) + b"\n" for row in rows))


def _write_clip(folder: Path, number: int) -> None:
    rng = np.random.default_rng(number)
    keypoints = rng.normal(0.5, 0.1, (FRAMES, 128, 3)).astype(np.float32)
    buffer = io.BytesIO()
    np.save(buffer, keypoints)
    name = clip_name(number)
    (folder / "keypoints" / f"{name}.npy").write_bytes(buffer.getvalue())
    annotation = {
        "clip_id": name,
        "signer_id": f"SIGNER{number % 3}",
        "fps": FPS,
        "n_frames": FRAMES,
        "segments": _segments(number),
    }
    (folder / "annotations" / f"{name}.json").write_bytes(canonical_json(annotation))


def write_edition(
    folder: Path,
    name: str,
    *,
    track: Track = "recognition",
    stage: Literal["qualifier", "final"] = "final",
    extra: str = "",
    dates: tuple[str, str] = DATES,
) -> Path:
    """Write a corpus, labels and an edition's file, and return the file."""
    for part in ("keypoints", "annotations"):
        (folder / "clips" / part).mkdir(parents=True, exist_ok=True)
    for number in range(CLIPS):
        _write_clip(folder / "clips", number)
    write_labels(folder / "labels-v1.jsonl", track)
    (folder / "vocabulary.txt").write_text("".join(f"{g}\n" for g in GLOSSES))
    vocabulary = "" if track == "translation" else "vocabulary: vocabulary.txt\n"
    digest = "sha256:" + "ab" * 32
    consumer = f"consumer: example.org/consumer@{digest}\n" if track == "segmentation" else ""
    file = folder / "edition.yaml"
    file.write_text(
        f"edition: {name}\ntitle: A synthetic exam\ntrack: {track}\nround: {stage}\n"
        f'exam_version: "1.0"\nlayout: clerc-128\nsource: clips/\nexpected_clips: {CLIPS}\n'
        f"labels: {{version: labels-v1, path: labels-v1.jsonl, note: one annotator}}\n"
        f"submissions: {{per_hour: 2, per_day: 3}}\n"
        f"scorer: {{name: {SCORER_OF_TRACK[track]}, "
        f'version: "{scorer_version(track)}", resamples: 100, seed: 200}}\n'
        f"opens: {dates[0]}T00:00:00Z\ncloses: {dates[1]}T00:00:00Z\n"
        f"organizer: {{name: CLERC, contact: organizers@example.org}}\n"
        f"{vocabulary}{consumer}{extra}"
    )
    return file


def seal_edition(
    workspace: Workspace,
    folder: Path,
    name: str,
    *,
    track: Track = "recognition",
    stage: Literal["qualifier", "final"] = "final",
    extra: str = "",
    dates: tuple[str, str] = DATES,
) -> None:
    """Write and seal an edition."""
    folder.mkdir(parents=True, exist_ok=True)
    file = write_edition(folder, name, track=track, stage=stage, extra=extra, dates=dates)
    wiring.seal(workspace, file, SilentReporter())


def register(
    workspace: Workspace,
    team: str,
    *,
    organizer: bool = False,
    data_track: Literal["open-data", "private-data"] = "open-data",
) -> None:
    add_team(
        team,
        organizer=organizer,
        data_track=data_track,
        ledger=workspace.ledger,
        clock=workspace.clock,
    )


def opaque_names(workspace: Workspace, edition: str) -> dict[int, str]:
    """Return each clip's opaque name by its number."""
    sealed = load_sealed_edition(edition, store=workspace.store, ledger=workspace.ledger)
    unsealer = workspace.keyring.unsealer(Purpose.LABELS)
    names = open_names(sealed, store=workspace.store, unsealer=unsealer)
    return {number: names[clip_name(number)] for number in range(CLIPS)}


def predictions(
    workspace: Workspace, edition: str, answer: Callable[[int], dict[str, object]]
) -> bytes:
    """Return a canonical predictions file: `answer` gives a clip's fields by its number."""
    names = opaque_names(workspace, edition)
    rows = sorted((names[n], answer(n)) for n in names)
    return b"".join(canonical_json({"clip_id": name, **row}) + b"\n" for name, row in rows)


def recognition_answers(wrong: int) -> Callable[[int], dict[str, object]]:
    """Answer every sign right, but the first sign of the first `wrong` clips."""

    def answer(number: int) -> dict[str, object]:
        signs = glosses_of(number)
        return {"signs": ["PARIS", *signs[1:]] if number < wrong else signs}

    return answer


def retain_run(
    workspace: Workspace,
    edition: str,
    team: str,
    data: bytes,
    *,
    run_id: str | None = None,
    outcome: Outcome = Outcome.COMPLETED,
    files: Mapping[str, bytes] | None = None,
) -> str:
    """Write a finished run into ledger and folder, as certify leaves it before scoring."""
    run_id = run_id or secrets.token_hex(8)
    sealed = load_sealed_edition(edition, store=workspace.store, ledger=workspace.ledger).statement
    kept = {"predictions.jsonl": data, **(files or {})}
    attempts = list(workspace.ledger.entries(edition=edition, team=team, kind="run-reserved"))
    at = workspace.clock.now()
    workspace.ledger.append(
        RunReserved(
            at=at,
            run_id=run_id,
            edition=edition,
            team=team,
            attempt=len(attempts) + 1,
            host="host-1",
            image=image_identity(),
            profile_sha256=sealed.profile_sha256,
            clip_set_sha256=sealed.clip_set_sha256,
            deadline_s=60,
        )
    )
    workspace.ledger.append(
        RunStarted(
            at=at,
            run_id=run_id,
            edition=edition,
            team=team,
            container_id="c" * 64,
            effective_sha256=sha256_hex(b"effective"),
            environment={"docker": "28.5.2"},
        )
    )
    for name, content in kept.items():
        workspace.store.create(f"runs/{run_id}/{name}", content)
    workspace.ledger.append(
        RunFinished(
            at=at,
            run_id=run_id,
            edition=edition,
            team=team,
            outcome=outcome,
            diagnostics=(),
            predictions_sha256=sha256_hex(data),
            files={name: sha256_hex(content) for name, content in kept.items()},
            elapsed_s=1,
        )
    )
    return run_id
