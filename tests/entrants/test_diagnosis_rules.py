"""What the diagnosis makes of observations: the most probable cause first, with a remedy."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests.outcomes import Diagnostic, Outcome
from manifests.predictions.problems import PredictionProblem, ProblemKind
from orchestrator.entrants.rules.answers import REMEDIES
from orchestrator.entrants.rules.findings import Cause, Certainty
from orchestrator.entrants.rules.log_reading import LogReading
from orchestrator.entrants.rules.observations import ImageFacts, Observation
from orchestrator.entrants.rules.programs import FileKind, ImageFile
from orchestrator.entrants.rules.ranking import MOST_FINDINGS, diagnose
from sandbox_profiles.profile import load_profile

PROFILE = load_profile("certified")
STRICT = load_profile("strict")
GIB = 2**30

FINE = Observation(profile=PROFILE, track="recognition", outcome=Outcome.COMPLETED)
FAILED = replace(
    FINE,
    outcome=Outcome.NONZERO_EXIT,
    diagnostics=(Diagnostic.EXIT_FAILURE,),
    exit_code=1,
)
NO_FACTS = ImageFacts(argv=("python3",), program="/usr/bin/python3", files={})


def log(*lines: str) -> LogReading:
    return LogReading.of("\n".join(lines).encode())


def causes(seen: Observation) -> list[Cause]:
    return [finding.cause for finding in diagnose(seen)]


def file(path: str, mode: int = 0o755, head: bytes = b"", **fields: object) -> ImageFile:
    values = {"path": path, "kind": FileKind.FILE, "mode": mode, "uid": 0, "gid": 0, "head": head}
    return ImageFile(**(values | fields))  # type: ignore[arg-type]


def test_a_run_without_trouble_has_no_findings() -> None:
    assert diagnose(replace(FINE, memory_peak_bytes=GIB, processes_peak=9, elapsed_s=60)) == ()


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("socket.gaierror: [Errno -3] Temporary failure in name resolution", Cause.NETWORK),
        ("curl: (6) Could not resolve host: example.org", Cause.NETWORK),
        ("OSError: [Errno 101] Network is unreachable", Cause.NETWORK),
        ("huggingface_hub.errors.LocalEntryNotFoundError: Cannot find the file", Cause.NETWORK),
        ("OSError: [Errno 30] Read-only file system: '/app/x.log'", Cause.WRITES_OUTSIDE),
        ("OSError: [Errno 30] Read-only file system: '/home/u/.cache/t'", Cause.HOME_OR_CACHE),
        (
            "mkdir: cannot create directory '/root/.config': Read-only file system",
            Cause.HOME_OR_CACHE,
        ),
        ("KeyError: 'getpwuid(): uid not found: 65532'", Cause.NO_PASSWD_ENTRY),
        ("whoami: cannot find name for user ID 65532", Cause.NO_PASSWD_ENTRY),
        ("numpy.exceptions._ArrayMemoryError: Unable to allocate 9 GiB", Cause.OUT_OF_MEMORY),
        ("MemoryError", Cause.OUT_OF_MEMORY),
        ("terminate called after throwing an instance of 'std::bad_alloc'", Cause.OUT_OF_MEMORY),
        ("RuntimeError: DataLoader worker is killed by signal: Bus error.", Cause.SHARED_MEMORY),
        ("RuntimeError: unable to write to file </torch_1_2>: /dev/shm", Cause.SHARED_MEMORY),
        ("RuntimeError: can't start new thread", Cause.PROCESS_LIMIT),
        ("OpenBLAS blas_thread_init: pthread_create failed for thread 1", Cause.PROCESS_LIMIT),
        ("bash: fork: retry: Resource temporarily unavailable", Cause.PROCESS_LIMIT),
        ("OSError: [Errno 24] Too many open files: '/input/a'", Cause.OPEN_FILES),
        ("OSError: [Errno 28] No space left on device: '/tmp/model'", Cause.TMP_FULL),
        ("OSError: [Errno 28] No space left on device: '/output/a'", Cause.OUTPUT_FULL),
        ("OSError: [Errno 27] File too large", Cause.FILE_TOO_LARGE),
        ("RuntimeError: No CUDA GPUs are available", Cause.GPU_ABSENT),
        ("AssertionError: Torch not compiled with CUDA enabled", Cause.GPU_ABSENT),
        ("ModuleNotFoundError: No module named 'torch'", Cause.MODULE_MISSING),
        ("ImportError: libGL.so.1: cannot open shared object file", Cause.LIBRARY_MISSING),
        (
            "FileNotFoundError: [Errno 2] No such file or directory: '/input/a.csv'",
            Cause.INPUT_NAME,
        ),
        (
            "python3: can't open file '/app/run.py': [Errno 2] No such file",
            Cause.ENTRYPOINT_MISSING,
        ),
        ("IndexError: list index out of range", Cause.PROGRAM_ERROR),
    ],
)
def test_last_words_name_the_cause(line: str, cause: Cause) -> None:
    assert causes(replace(FAILED, log=log(line)))[0] is cause


def test_last_words_weigh_more_than_earlier_ones() -> None:
    earlier = "warning: Temporary failure in name resolution"
    noise = [f"step {number}" for number in range(50)]
    seen = replace(FAILED, log=log(earlier, *noise, "MemoryError"))
    assert causes(seen)[:2] == [Cause.OUT_OF_MEMORY, Cause.NETWORK]


def test_the_memory_flag_weighs_more_than_any_words() -> None:
    seen = replace(
        FAILED,
        outcome=Outcome.OUT_OF_MEMORY,
        diagnostics=(Diagnostic.MEMORY_LIMIT,),
        log=log("socket.gaierror: [Errno -3] Temporary failure in name resolution"),
        memory_peak_bytes=4 * GIB - 1,
        tmp_bytes=GIB // 2,
    )
    first = diagnose(seen)[0]
    assert (first.cause, first.certainty) == (Cause.OUT_OF_MEMORY, Certainty.PROVEN)
    assert "4 GiB" in first.fact
    assert first.details == ("of these 512 MiB in /tmp",)


def test_waiting_for_a_server_until_the_deadline_is_a_matter_of_the_network() -> None:
    late = replace(FAILED, outcome=Outcome.TIMED_OUT, exit_code=137)
    assert causes(late) == [Cause.DEADLINE]
    assert causes(replace(late, network_attempts=40)) == [Cause.NETWORK, Cause.DEADLINE]


def test_attempts_that_did_no_harm_are_a_warning_with_their_number() -> None:
    (warning,) = diagnose(replace(FINE, network_attempts=3))
    assert (warning.cause, warning.certainty) == (Cause.NETWORK, Certainty.SAID)
    assert "(3 attempts counted)" in warning.fact


def test_limits_that_are_nearly_reached_are_warnings() -> None:
    seen = replace(
        FINE,
        memory_peak_bytes=int(3.9 * GIB),
        tmp_bytes=int(0.95 * GIB),
        elapsed_s=3500,
        processes_peak=512,
    )
    assert set(causes(seen)) == {
        Cause.OUT_OF_MEMORY,
        Cause.TMP_FULL,
        Cause.DEADLINE,
        Cause.PROCESS_LIMIT,
    }


def test_a_full_tmp_is_told_by_its_size_and_by_its_files() -> None:
    words = log("OSError: [Errno 28] No space left on device")
    full = replace(FAILED, log=words, tmp_bytes=GIB)
    assert causes(full)[0] is Cause.TMP_FULL
    crowded = replace(FAILED, log=words, tmp_bytes=0, tmp_files=PROFILE.tmp_inodes)
    assert causes(crowded)[0] is Cause.TMP_FULL
    assert causes(replace(FAILED, log=words, tmp_bytes=0))[0] is Cause.OUTPUT_FULL


def test_space_that_ran_out_unseen_is_tmp_by_elimination_unless_output_is_full() -> None:
    words = log("OSError: [Errno 28] No space left on device")
    unseen = replace(FAILED, log=words, tmp_bytes=None)
    assert set(causes(unseen)) == {Cause.TMP_FULL}
    full = replace(unseen, diagnostics=(*unseen.diagnostics, Diagnostic.OUTPUT_FULL))
    assert set(causes(full)) == {Cause.OUTPUT_FULL}


def test_a_profile_without_shared_memory_is_named() -> None:
    seen = replace(
        FAILED,
        profile=STRICT,
        log=log("FileNotFoundError: [Errno 2] _multiprocessing.SemLock(", "No such file"),
    )
    first = diagnose(seen)[0]
    assert first.cause is Cause.SHARED_MEMORY
    assert "strict" in first.fact


def test_a_bus_error_alone_points_at_shared_memory() -> None:
    seen = replace(FAILED, exit_code=135, diagnostics=(Diagnostic.EXIT_ON_SIGNAL,))
    assert causes(seen)[0] is Cause.SHARED_MEMORY


def test_a_kill_without_news_of_memory_leads_to_the_peak() -> None:
    seen = replace(FAILED, exit_code=137, diagnostics=(Diagnostic.EXIT_ON_SIGNAL,))
    first = diagnose(seen)[0]
    assert (first.cause, "peak memory" in first.remedy) == (Cause.CRASH, True)


def test_a_passwd_entry_that_is_there_is_not_missing() -> None:
    said = replace(FAILED, log=log("KeyError: 'getpwuid(): uid not found: 1000'"))
    image = replace(NO_FACTS, has_passwd_entry=True)
    assert Cause.NO_PASSWD_ENTRY not in causes(replace(said, image=image))


def test_a_closed_file_of_the_image_is_told_from_a_place_that_cannot_be_written() -> None:
    said = replace(FAILED, log=log("PermissionError: [Errno 13] Permission denied: '/opt/w.bin'"))
    there = replace(NO_FACTS, files={"/opt/w.bin": file("/opt/w.bin", mode=0o600)})
    first = diagnose(replace(said, image=there))[0]
    assert first.cause is Cause.ROOT_ONLY_FILES
    assert first.remedy.endswith("chmod -R a+rX /opt")
    absent = replace(NO_FACTS, files={"/opt/w.bin": None})
    assert causes(replace(said, image=absent))[0] is Cause.WRITES_OUTSIDE


def test_a_readable_file_in_a_closed_folder_is_closed() -> None:
    said = replace(FAILED, log=log("PermissionError: [Errno 13] Permission denied: '/srv/m/w'"))
    files = {
        "/srv/m/w": file("/srv/m/w", mode=0o644),
        "/srv/m": file("/srv/m", mode=0o700, kind=FileKind.DIRECTORY),
        "/srv": file("/srv", kind=FileKind.DIRECTORY),
    }
    assert causes(replace(said, image=replace(NO_FACTS, files=files)))[0] is Cause.ROOT_ONLY_FILES


def test_the_second_pass_lists_what_nobody_said() -> None:
    seen = replace(FAILED, log=log("Segmentation fault"), outside_writes=("/app/state.db",))
    (found,) = [one for one in diagnose(seen) if one.cause is Cause.WRITES_OUTSIDE]
    assert found.details == ("/app/state.db",)


def test_answers_elsewhere_are_found_wherever_they_lie() -> None:
    empty = replace(FINE, outcome=Outcome.NO_PREDICTIONS, exit_code=0)
    assert causes(empty) == [Cause.NO_OUTPUT]
    for seen in (
        replace(empty, files=("results.json",)),
        replace(empty, tmp_names=("predictions.jsonl",)),
        replace(empty, outside_writes=("/app/predictions.jsonl",)),
    ):
        assert causes(seen)[0] is Cause.OUTPUT_ELSEWHERE


@pytest.mark.parametrize(
    ("facts", "cause"),
    [
        (ImageFacts(argv=("run",), program=None, files={}), Cause.ENTRYPOINT_MISSING),
        (
            ImageFacts(argv=("/run",), program="/run", files={"/run": None}),
            Cause.ENTRYPOINT_MISSING,
        ),
        (
            ImageFacts(argv=("/run",), program="/run", files={"/run": file("/run", 0o644)}),
            Cause.ENTRYPOINT_NOT_EXECUTABLE,
        ),
        (
            ImageFacts(
                argv=("/run",),
                program="/run",
                files={"/run": file("/run", head=b"#!/bin/ruby\n"), "/bin/ruby": None},
            ),
            Cause.INTERPRETER_MISSING,
        ),
        (
            ImageFacts(
                argv=("/run",),
                program="/run",
                files={"/run": file("/run", head=b"#!/bin/sh\r\n"), "/bin/sh": file("/bin/sh")},
            ),
            Cause.INTERPRETER_MISSING,
        ),
        (
            ImageFacts(
                argv=("/run",), program="/run", files={"/run": file("/run", head=b"echo hello\n")}
            ),
            Cause.INTERPRETER_MISSING,
        ),
    ],
)
def test_a_program_that_does_not_start_is_looked_at_in_the_image(
    facts: ImageFacts, cause: Cause
) -> None:
    seen = replace(FAILED, diagnostics=(Diagnostic.EXIT_NOT_FOUND,), exit_code=127, image=facts)
    assert causes(seen)[0] is cause


def test_a_command_that_a_script_calls_is_not_the_entrypoint() -> None:
    facts = ImageFacts(
        argv=("/run",),
        program="/run",
        files={"/run": file("/run", head=b"#!/bin/sh\n"), "/bin/sh": file("/bin/sh")},
    )
    seen = replace(
        FAILED,
        diagnostics=(Diagnostic.EXIT_NOT_FOUND,),
        exit_code=127,
        image=facts,
        log=log("/run: 3: ffmpeg: not found"),
    )
    first = diagnose(seen)[0]
    assert first.cause is Cause.ENTRYPOINT_MISSING
    assert first.fact.startswith("ffmpeg, which it calls")


def test_every_kind_of_problem_has_a_remedy_and_is_shown_with_its_place() -> None:
    assert set(REMEDIES) == set(ProblemKind)
    for kind in ProblemKind:
        problem = PredictionProblem(kind, "0001", 7, "predictions.jsonl:7, clip 0001: wrong")
        seen = replace(
            FAILED,
            outcome=Outcome.INVALID_PREDICTIONS,
            diagnostics=(Diagnostic.PREDICTIONS_FORMAT,),
            exit_code=0,
            problems=(problem,),
        )
        first = diagnose(seen)[0]
        expected = (
            Cause.INVALID_PREDICTIONS if problem.invalidates else Cause.INCOMPLETE_PREDICTIONS
        )
        assert first.cause is expected
        assert first.details == (problem.message,)
        assert first.remedy == REMEDIES[kind]


def test_vague_findings_give_way_to_clear_ones() -> None:
    clear = replace(FAILED, log=log("Traceback", "MemoryError"))
    assert causes(clear) == [Cause.OUT_OF_MEMORY]
    assert causes(replace(FAILED, log=log("ValueError: bad"))) == [Cause.PROGRAM_ERROR]


def test_our_own_failure_blames_nobody_else() -> None:
    seen = replace(FAILED, outcome=Outcome.PLATFORM_FAULT, engine_message="broken\x1b[31m pipe")
    first = diagnose(seen)[0]
    assert first.cause is Cause.OUR_SIDE
    assert "\x1b" not in first.details[0]


def test_a_run_with_a_gpu_does_not_lack_one() -> None:
    said = replace(FAILED, log=log("RuntimeError: CUDA initialization: out of memory"))
    assert Cause.GPU_ABSENT in causes(said)
    assert Cause.GPU_ABSENT not in causes(replace(said, has_gpu=True))


@settings(max_examples=60)
@given(
    noise=st.binary(max_size=600),
    outcome=st.sampled_from(Outcome),
    codes=st.lists(st.sampled_from(Diagnostic), max_size=3, unique=True),
    exit_code=st.none() | st.integers(0, 255),
)
def test_whatever_a_log_holds_the_findings_are_few_and_harmless(
    noise: bytes, outcome: Outcome, codes: list[Diagnostic], exit_code: int | None
) -> None:
    words = b"\x1b]0;x\x07 OSError: [Errno 30] Read-only file system: '/a\x1b[2J'\n"
    seen = Observation(
        profile=PROFILE,
        track="recognition",
        outcome=outcome,
        diagnostics=tuple(codes),
        exit_code=exit_code,
        log=LogReading.of(noise + b"\n" + words),
        image=NO_FACTS,
    )
    found = diagnose(seen)
    assert len(found) <= MOST_FINDINGS
    assert len({one.cause for one in found}) == len(found)
    for one in found:
        shown = "".join((one.fact, one.remedy, *one.details))
        assert shown.isprintable()
        assert len(one.details) <= 5
        assert all(len(detail) <= 200 for detail in one.details)
