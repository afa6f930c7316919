"""What the probe tries against each limit: the limits are made small, then walked into."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Final

from orchestrator.sandbox.rules.elf import ProbeCall
from orchestrator.sandbox.rules.probe_checks import Check
from sandbox_profiles.profile import Boundary, SandboxProfile

TMP_SIZE: Final = "/tmp has its size"  # noqa: S108 - a path in the container
TMP_FILES: Final = "/tmp has its number of files"  # noqa: S108
SHM_SIZE: Final = "/dev/shm has its size"  # noqa: S108
NO_SHM: Final = "there is no /dev/shm"
FILE_SIZE: Final = "no file grows beyond the limit"
OPEN_FILES: Final = "the limit of open files acts"
OWN_PROCESSOR: Final = "a processor of the profile can be used"
OTHER_PROCESSOR: Final = "no other processor can be used"

_SMALL_BYTES: Final = 2**20
_FILE_BYTES: Final = 2**22
_FILES: Final = 64
_MEMORY_BYTES: Final = {Boundary.HOST_KERNEL: 96 * 2**20, Boundary.SENTRY: 192 * 2**20}
_PIDS: Final = {Boundary.HOST_KERNEL: 64, Boundary.SENTRY: 512}
"""The sentry needs memory and threads of its own."""
_AT_FDCWD: Final = -100
_CREATE: Final = 0o102  # O_CREAT | O_RDWR
_SIG_BLOCK: Final = 0
_FILE_SIZE_SIGNAL: Final = (1 << 24).to_bytes(8, "little")  # SIGXFSZ, which would end the probe
_PROCESSOR_BYTES: Final = 128


def small_limits(profile: SandboxProfile) -> SandboxProfile:
    """Return the profile with limits that a probe reaches at once; kinds of limits stay."""
    return profile.model_copy(
        update={
            "memory_bytes": _MEMORY_BYTES[profile.boundary],
            "pids": _PIDS[profile.boundary],
            "cpus": 1,
            "cpuset": str(first_processor(profile)),
            "tmp_bytes": _SMALL_BYTES,
            "tmp_inodes": _FILES,
            "shm_bytes": None if profile.shm_bytes is None else _SMALL_BYTES,
            "output_bytes": _SMALL_BYTES,
            "file_size_bytes": _FILE_BYTES,
            "nofile": _FILES,
        }
    )


def first_processor(profile: SandboxProfile) -> int:
    """Return the lowest number of the profile's first range of processors."""
    return int(profile.cpuset.split(",")[0].split("-")[0])


def _open(path: bytes) -> ProbeCall:
    return ProbeCall(syscall="openat", arguments=(_AT_FDCWD, path + b"\0", _CREATE, 0o644))


def _fill(descriptor: int, size_bytes: int) -> ProbeCall:
    return ProbeCall(syscall="fallocate", arguments=(descriptor, 0, 0, size_bytes + 4096))


def _refused(name: str, error: int, *calls: ProbeCall) -> Check:
    return Check(name=name, calls=calls, expected=errno.errorcode[error], accepts=(-error).__eq__)


def _files(profile: SandboxProfile) -> Iterator[Check]:
    """Open 3 in `/tmp`, 4 in `/output` and 5 in `/dev/shm`, in this order."""
    tmp = (_open(b"/tmp/full"), _fill(3, profile.tmp_bytes))
    yield _refused(TMP_SIZE, errno.ENOSPC, *tmp)
    if profile.boundary is Boundary.HOST_KERNEL:
        folders = (
            ProbeCall(syscall="mkdirat", arguments=(_AT_FDCWD, b"/tmp/%d\0" % number, 0o700))
            for number in range(profile.tmp_inodes)
        )
        yield _refused(TMP_FILES, errno.ENOSPC, *folders)
    block = ProbeCall(syscall="rt_sigprocmask", arguments=(_SIG_BLOCK, _FILE_SIZE_SIGNAL, 0, 8))
    grow = ProbeCall(syscall="ftruncate", arguments=(4, profile.file_size_bytes + 1))
    yield _refused(FILE_SIZE, errno.EFBIG, block, _open(b"/output/large"), grow)
    if profile.shm_bytes is None:
        yield Check(
            name=NO_SHM,
            calls=(_open(b"/dev/shm/full"),),
            expected="an error",
            accepts=lambda result: result < 0,
        )
    else:
        shm = (_open(b"/dev/shm/full"), _fill(5, profile.shm_bytes))
        yield _refused(SHM_SIZE, errno.ENOSPC, *shm)


def _run_on(processor: int) -> ProbeCall:
    mask = (1 << processor).to_bytes(_PROCESSOR_BYTES, "little")
    return ProbeCall(syscall="sched_setaffinity", arguments=(0, _PROCESSOR_BYTES, mask))


def _processors(profile: SandboxProfile, processors: int) -> Iterator[Check]:
    own = first_processor(profile)
    yield Check(name=OWN_PROCESSOR, calls=(_run_on(own),), expected="0", accepts=(0).__eq__)
    other = next((number for number in range(processors) if number != own), None)
    if other is not None:
        yield _refused(OTHER_PROCESSOR, errno.EINVAL, _run_on(other))


def limit_checks(profile: SandboxProfile, *, processors: int) -> tuple[Check, ...]:
    """Return the checks for a profile of `small_limits` on a host of so many processors.

    gVisor's kernel keeps affinities to itself, so that only the host's cgroup limits them there,
    and it counts no files of `/tmp`: they take its memory, which is limited.
    On a host of one processor there is no other to be kept from.
    """
    copies = (ProbeCall(syscall="dup", arguments=(1,)),) * profile.nofile
    own_kernel = profile.boundary is Boundary.SENTRY
    return (
        *_files(profile),
        *(() if own_kernel else _processors(profile, processors)),
        _refused(OPEN_FILES, errno.EMFILE, *copies),
    )
