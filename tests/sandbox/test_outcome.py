"""How a run is judged, and in which order."""

from __future__ import annotations

from itertools import product

import pytest

from manifests.outcomes import Diagnostic, Outcome
from orchestrator.sandbox.rules.collector import CollectedFiles, OutputViolation
from orchestrator.sandbox.rules.outcome import ExecutionFacts, StartFailure, judge, start_failure

GOOD = CollectedFiles({"predictions.jsonl": b"{}"})


def test_a_clean_end_with_predictions_is_completed() -> None:
    assert judge(ExecutionFacts(exit_code=0, output=GOOD)) == (Outcome.COMPLETED, ())


def test_the_order_of_judgement_is_deadline_memory_platform_exit_output() -> None:
    for deadline, memory, lost, code in product(
        [True, False], [True, False], [True, False], [0, 1]
    ):
        facts = ExecutionFacts(
            deadline_fired=deadline,
            out_of_memory=memory,
            engine_lost=lost,
            exit_code=code,
            output=CollectedFiles({}),
        )
        expected = (
            Outcome.TIMED_OUT
            if deadline
            else Outcome.OUT_OF_MEMORY
            if memory
            else Outcome.PLATFORM_FAULT
            if lost
            else Outcome.NONZERO_EXIT
            if code
            else Outcome.NO_PREDICTIONS
        )
        assert judge(facts)[0] is expected


def test_memory_decides_though_the_exit_code_is_zero() -> None:
    outcome, codes = judge(ExecutionFacts(out_of_memory=True, exit_code=0, output=GOOD))
    assert outcome is Outcome.OUT_OF_MEMORY
    assert codes == (Diagnostic.MEMORY_LIMIT,)


@pytest.mark.parametrize("code", [137, 143])
def test_a_forged_exit_code_is_the_entrants_own(code: int) -> None:
    outcome, codes = judge(ExecutionFacts(exit_code=code, output=GOOD))
    assert (outcome, codes) == (Outcome.NONZERO_EXIT, (Diagnostic.EXIT_ON_SIGNAL,))


@pytest.mark.parametrize(
    ("code", "diagnostic"),
    [
        (1, "exit-failure"),
        (126, "exit-not-executable"),
        (127, "exit-not-found"),
        (128, "exit-failure"),
        (129, "exit-on-signal"),
        (159, "exit-on-signal"),
        (160, "exit-failure"),
        (255, "exit-failure"),
    ],
)
def test_exit_codes_map_to_classes(code: int, diagnostic: str) -> None:
    assert judge(ExecutionFacts(exit_code=code))[1][0] == diagnostic


def test_a_code_that_came_with_a_lost_holder_is_not_the_entrants() -> None:
    outcome, codes = judge(ExecutionFacts(exit_code=143, holder_lost=True))
    assert (outcome, codes) == (Outcome.PLATFORM_FAULT, (Diagnostic.HOLDER_LOST,))


@pytest.mark.parametrize(
    ("facts", "diagnostic"),
    [
        (ExecutionFacts(engine_lost=True), Diagnostic.ENGINE_LOST),
        (ExecutionFacts(engine_error=True, exit_code=0), Diagnostic.ENGINE_ERROR),
        (ExecutionFacts(input_changed=True, exit_code=0, output=GOOD), Diagnostic.INPUT_CHANGED),
        (ExecutionFacts(gpu_lost=True, exit_code=0, output=GOOD), Diagnostic.GPU_LOST),
        (ExecutionFacts(start_failure=StartFailure.GPU), Diagnostic.GPU_UNAVAILABLE),
        (ExecutionFacts(start_failure=StartFailure.ENGINE), Diagnostic.ENGINE_ERROR),
        (ExecutionFacts(), Diagnostic.ENGINE_ERROR),
    ],
)
def test_our_own_faults_are_platform_faults(facts: ExecutionFacts, diagnostic: Diagnostic) -> None:
    assert judge(facts) == (Outcome.PLATFORM_FAULT, (diagnostic,))


def test_an_output_that_breaks_the_rules_is_its_own_outcome() -> None:
    broken = OutputViolation(Diagnostic.OUTPUT_KIND, "x is a pipe")
    assert judge(ExecutionFacts(exit_code=0, output=broken)) == (
        Outcome.OUTPUT_LIMIT,
        (Diagnostic.OUTPUT_KIND,),
    )
    assert judge(ExecutionFacts(exit_code=2, output=broken)) == (
        Outcome.NONZERO_EXIT,
        (Diagnostic.EXIT_FAILURE, Diagnostic.OUTPUT_KIND),
    )


def test_a_full_output_is_told_beside_the_outcome() -> None:
    full = CollectedFiles({"predictions.jsonl": bytes(2**20 - 4096)})
    facts = ExecutionFacts(exit_code=1, output=full, output_limit_bytes=2**20 - 1)
    assert judge(facts)[1] == (Diagnostic.EXIT_FAILURE, Diagnostic.OUTPUT_FULL)
    roomy = ExecutionFacts(exit_code=1, output=full, output_limit_bytes=2**21)
    assert judge(roomy)[1] == (Diagnostic.EXIT_FAILURE,)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ('OCI runtime create failed: exec: "/run": executable file not found in $PATH', "entrant"),
        ('starting container process caused: exec: "/run": permission denied: unknown', "entrant"),
        ("starting container process caused: exec format error", "entrant"),
        ('could not select device driver "" with capabilities: [[gpu]]', "gpu"),
        ("nvidia-container-cli: initialization error: nvml error", "gpu"),
        ("starting container process caused: rootfs mount: permission denied", "engine"),
        ("failed to mount local volume: invalid argument", "engine"),
        ("Decoding seccomp profile failed", "engine"),
    ],
)
def test_a_refused_start_is_laid_at_the_right_door(message: str, expected: str) -> None:
    assert start_failure(message) == expected


def test_an_image_that_cannot_be_started_is_the_entrants_failure() -> None:
    assert judge(ExecutionFacts(start_failure=StartFailure.ENTRANT)) == (
        Outcome.NONZERO_EXIT,
        (Diagnostic.START_REFUSED,),
    )
