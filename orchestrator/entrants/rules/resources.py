"""Limits that were reached: memory, shared memory, space, file size, processes, files, time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from manifests.outcomes import Diagnostic, Outcome
from orchestrator.entrants.rules.findings import Cause, Certainty, Finding
from orchestrator.entrants.rules.log_reading import Match
from orchestrator.entrants.rules.observations import Observation
from orchestrator.entrants.rules.quantities import size_text

_NEAR: Final = 0.9
_FULL: Final = 0.98
_LATE: Final = 0.8
_SIGBUS, _SIGXFSZ = 128 + 7, 128 + 25

_MEMORY: Final = re.compile(
    r"\bMemoryError\b|std::bad_alloc|Cannot allocate memory|not enough memory|Unable to allocate"
    r"|OutOfMemoryError"
)
_SHARED: Final = re.compile(
    r"Bus error|SIGBUS|/dev/shm|unable to (?:open|write to|mmap) .*(?:shared memory|/torch_)"
    r"|insufficient shared memory|No usable implementation found for semaphores|/psm_"
)
_NO_SHARED: Final = re.compile(r"_multiprocessing\.SemLock|shm_open|/dev/shm|SharedMemory")
_NO_SPACE: Final = re.compile(r"No space left on device|ENOSPC|Disk quota exceeded|disk is full")
_TOO_LARGE: Final = re.compile(r"File too large|EFBIG|File size limit exceeded|SIGXFSZ")
_PROCESSES: Final = re.compile(
    r"can't start new thread|Resource temporarily unavailable|fork: retry|pthread_create failed"
    r"|Cannot fork|libgomp: Thread creation failed"
)
_OPEN_FILES: Final = re.compile(r"Too many open files|EMFILE")


def memory(seen: Observation) -> Iterator[Finding]:
    """Find memory that ran out, or nearly did."""
    limit, peak = seen.profile.memory_bytes, seen.memory_peak_bytes
    said = seen.log.find(_MEMORY)
    remedy = (
        "work on one clip at a time, in smaller batches or with smaller types; files in /tmp, "
        "/dev/shm and /output count as memory, too"
    )
    if seen.outcome is Outcome.OUT_OF_MEMORY:
        fact = f"it needed more than the {size_text(limit)} of memory{_peak(peak)}"
        yield _finding(Cause.OUT_OF_MEMORY, Certainty.PROVEN, fact, remedy, _held(seen))
    elif said is not None and not seen.completed:
        fact = f"an allocation failed; the limit is {size_text(limit)}{_peak(peak)}"
        yield _finding(Cause.OUT_OF_MEMORY, said.certainty, fact, remedy, (said.line,))
    elif peak is not None and peak > _NEAR * limit:
        fact = f"it used {size_text(peak)} of {size_text(limit)} memory: more clips may break it"
        yield _finding(Cause.OUT_OF_MEMORY, Certainty.SAID, fact, remedy)


def _peak(peak: int | None) -> str:
    return "" if peak is None else f"; the peak that was seen is {size_text(peak)}"


def _held(seen: Observation) -> tuple[str, ...]:
    held = {"/tmp": seen.tmp_bytes, "/dev/shm": seen.shm_bytes}  # noqa: S108 - in the container
    texts = [f"{size_text(used)} in {place}" for place, used in held.items() if used]
    return (f"of these {' and '.join(texts)}",) if texts else ()


def shared_memory(seen: Observation) -> Iterator[Finding]:
    """Find a `/dev/shm` that is absent or too small."""
    limit = seen.profile.shm_bytes
    if limit is None:
        said = seen.log.find(_NO_SHARED)
        if said is not None and not seen.completed:
            fact = f"the profile {seen.profile.name} has no /dev/shm, and it was asked for"
            remedy = "use threads or pipes; multiprocessing's locks, pools and queues need it"
            yield _finding(Cause.SHARED_MEMORY, said.certainty, fact, remedy, (said.line,))
        return
    said = seen.log.find(_SHARED)
    full = seen.shm_bytes is not None and seen.shm_bytes > _FULL * limit
    remedy = (
        f"there are {size_text(limit)} of /dev/shm: load with fewer workers or num_workers=0, or "
        "pass file names between processes and no arrays"
    )
    if seen.exit_code == _SIGBUS or full:
        fact = "shared memory is too small for it" + (": /dev/shm is full" if full else "")
        certainty = Certainty.PROVEN if full else Certainty.LAST_WORDS
        yield _finding(Cause.SHARED_MEMORY, certainty, fact, remedy, _line(said))
    elif said is not None and not seen.completed:
        fact = "it met a limit of shared memory"
        yield _finding(Cause.SHARED_MEMORY, said.certainty, fact, remedy, (said.line,))


def space(seen: Observation) -> Iterator[Finding]:
    """Find a full `/tmp` or `/output`."""
    said = seen.log.find(_NO_SPACE)
    yield from _tmp_space(seen, said)
    yield from _output_space(seen, said)


def _tmp_space(seen: Observation, said: Match | None) -> Iterator[Finding]:
    limit = size_text(seen.profile.tmp_bytes)
    remedy = "unpack and compile when the image is built; delete temporary files as you go"
    files = f"{seen.profile.tmp_inodes} files"
    if _tmp_is_full(seen) or _names(said, "/tmp"):  # noqa: S108 - a path in the container
        fact = f"it filled /tmp, which holds {limit} and {files}"
        certainty = Certainty.PROVEN if _tmp_is_full(seen) else Certainty.LAST_WORDS
        yield _finding(Cause.TMP_FULL, certainty, fact, remedy, _line(said))
    elif seen.tmp_bytes is not None and seen.tmp_bytes > _NEAR * seen.profile.tmp_bytes:
        fact = f"it has {size_text(seen.tmp_bytes)} of {limit} in /tmp"
        yield _finding(Cause.TMP_FULL, Certainty.SAID, fact, "delete temporary files as you go")
    elif said is not None and _is_left_to_tmp(seen, said):
        fact = (
            "it ran out of space: most likely in /tmp, which nobody saw and which holds "
            f"{limit} and {files}, as /output was not full at the end"
        )
        yield _finding(Cause.TMP_FULL, said.certainty, fact, remedy, _line(said))


def _output_space(seen: Observation, said: Match | None) -> Iterator[Finding]:
    full = _output_is_full(seen)
    elsewhere = (
        _tmp_is_full(seen)
        or _names(said, "/tmp", "/dev/shm")  # noqa: S108 - paths in the container
        or (said is not None and _is_left_to_tmp(seen, said))
    )
    if full or (said is not None and not elsewhere and not seen.completed):
        fact = f"/output is full: it holds {size_text(seen.profile.output_bytes)}"
        remedy = "write predictions.jsonl alone there; intermediate results belong in /tmp"
        certainty = Certainty.PROVEN if full or said is None else said.certainty
        yield _finding(Cause.OUTPUT_FULL, certainty, fact, remedy, _line(said))


def _names(said: Match | None, *places: str) -> bool:
    return said is not None and any(place in said.line for place in places)


def _output_is_full(seen: Observation) -> bool:
    full = {Diagnostic.OUTPUT_FULL, Diagnostic.OUTPUT_TOO_LARGE}
    return not full.isdisjoint(seen.diagnostics)


def _is_left_to_tmp(seen: Observation, said: Match) -> bool:
    """Tell whether `/tmp` is what remains, where nobody could look into it while the run went."""
    named = _names(said, "/tmp", "/output", "/dev/shm")  # noqa: S108 - paths in the container
    unseen = seen.tmp_bytes is None and not seen.completed
    output = _output_is_full(seen) or seen.outcome is Outcome.OUTPUT_LIMIT
    return unseen and not named and not output


def _tmp_is_full(seen: Observation) -> bool:
    bytes_full = seen.tmp_bytes is not None and seen.tmp_bytes > _FULL * seen.profile.tmp_bytes
    files_full = seen.tmp_files is not None and seen.tmp_files >= seen.profile.tmp_inodes
    return bytes_full or files_full


def file_size(seen: Observation) -> Iterator[Finding]:
    """Find a single file beyond the limit of the profile."""
    said = seen.log.find(_TOO_LARGE)
    killed = seen.exit_code == _SIGXFSZ
    if killed or (said is not None and not seen.completed):
        limit = size_text(seen.profile.file_size_bytes)
        certainty = Certainty.PROVEN if killed or said is None else said.certainty
        yield _finding(
            Cause.FILE_TOO_LARGE,
            certainty,
            f"it wrote a file larger than {limit}, which no file may be, sparse ones included",
            "write several smaller files, or none: what is needed can be computed clip by clip",
            _line(said),
        )


def processes(seen: Observation) -> Iterator[Finding]:
    """Find too many processes and threads, or open files."""
    said, limit = seen.log.find(_PROCESSES), seen.profile.pids
    peak = seen.processes_peak
    reached = peak is not None and peak >= _FULL * limit
    if reached or (said is not None and not seen.completed):
        certainty = said.certainty if said else Certainty.SAID
        seen_peak = "" if peak is None else f"; {peak} were seen"
        yield _finding(
            Cause.PROCESS_LIMIT,
            Certainty.PROVEN if reached and said else certainty,
            f"it may have {limit} processes and threads together{seen_peak}",
            f"start at most {seen.profile.cpus} workers, and let each library use OMP_NUM_THREADS "
            "threads instead of the machine's number of CPUs",
            _line(said),
        )
    files = seen.log.find(_OPEN_FILES)
    if files is not None and not seen.completed:
        yield _finding(
            Cause.OPEN_FILES,
            files.certainty,
            f"it had more than {seen.profile.nofile} files open",
            "close each clip's file before the next is opened",
            (files.line,),
        )


def deadline(seen: Observation) -> Iterator[Finding]:
    """Find time that ran out, or nearly did."""
    limit = seen.profile.deadline_s
    if seen.outcome is Outcome.TIMED_OUT:
        last = seen.log.last_line()
        yield _finding(
            Cause.DEADLINE,
            Certainty.PROVEN,
            f"it was killed at the deadline of {limit} s",
            "write predictions as clips are done, say where the time goes in the log, and see "
            "that nothing waits for input, a lock or a server",
            (f"its last line: {last}",) if last else ("it wrote nothing to its log",),
        )
    elif seen.elapsed_s > _LATE * limit:
        fact = f"it took {seen.elapsed_s:.0f} of {limit} s"
        remedy = "a certified run has as much time for its own clips: leave room"
        yield _finding(Cause.DEADLINE, Certainty.SAID, fact, remedy)


def _line(said: Match | None) -> tuple[str, ...]:
    return () if said is None else (said.line,)


def _finding(
    cause: Cause, certainty: Certainty, fact: str, remedy: str, details: tuple[str, ...] = ()
) -> Finding:
    return Finding(cause=cause, certainty=certainty, fact=fact, remedy=remedy, details=details)
