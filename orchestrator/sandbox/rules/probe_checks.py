"""What the probe tries inside the sandbox, and which answers the sandbox has to give.

Here for the host's own kernel behind our filter; `sentry_probe` has what differs under gVisor.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from manifests.names import ENTRANT_ID
from orchestrator.sandbox.rules.elf import ProbeCall
from sandbox_profiles.profile import SandboxProfile
from sandbox_profiles.seccomp import SocketFamily

OPEN_FOLDER: Final = "open"
"""A folder of the probe's image that everybody may write to, were it not for the read-only root."""

_AT_FDCWD: Final = -100
_CREATE: Final = 0o102  # O_CREAT | O_RDWR
_STREAM, _DATAGRAM, _RAW = 1, 2, 3
_PR_GET_SECCOMP, _PR_CAPBSET_READ, _PR_GET_NO_NEW_PRIVS = 21, 23, 39
_CAPABILITIES: Final = 41
_CLONE_NEWUSER: Final = 0x10000000
_SIGCHLD: Final = 17
PROCESS_LIMIT: Final = "the process limit acts"
FORK: Final = ProbeCall(syscall="clone", arguments=(_SIGCHLD,), child_pauses=True)
_POPULATE: Final = 0x8022  # MAP_POPULATE | MAP_ANONYMOUS | MAP_PRIVATE
_READ_WRITE: Final = 3
DOCUMENTATION_ADDRESS: Final = struct.pack(
    ">2s2s4s8x", b"\x02\x00", b"\x00\x35", bytes((192, 0, 2, 1))
)

_FORBIDDEN_FAMILIES: Final = {
    "AF_VSOCK": (40, _STREAM),
    "AF_ALG": (38, 5),
    "AF_PACKET": (17, _RAW),
    "AF_BLUETOOTH": (31, _RAW),
    "AF_TIPC": (30, _STREAM),
    "AF_KEY": (15, _RAW),
}
ALLOWED_FAMILIES: Final = {
    SocketFamily.UNIX: (1, _STREAM),
    SocketFamily.INET: (2, _STREAM),
    SocketFamily.NETLINK: (16, _RAW),
}
FORBIDDEN_CALLS: Final = {
    "io_uring": ProbeCall(syscall="io_uring_setup", arguments=(1, bytes(120))),
    "keyrings": ProbeCall(syscall="keyctl", arguments=(0, -3, 1)),
    "a user namespace by unshare": ProbeCall(syscall="unshare", arguments=(_CLONE_NEWUSER,)),
    "a user namespace by clone": ProbeCall(
        syscall="clone", arguments=(_CLONE_NEWUSER | _SIGCHLD,), child_pauses=True
    ),
    "clone3": ProbeCall(syscall="clone3", arguments=(bytes(88), 88), child_pauses=True),
    "mount": ProbeCall(syscall="mount", arguments=(b"none\0", b"/tmp\0", b"tmpfs\0", 0, 0)),
    "bpf": ProbeCall(syscall="bpf", arguments=(0, bytes(48), 48)),
    "extended attributes": ProbeCall(
        syscall="setxattr", arguments=(b"/output\0", b"user.x\0", b"x", 1, 0)
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A promise of the sandbox: the calls to make, and which result of the last one keeps it."""

    name: str
    calls: tuple[ProbeCall, ...]
    expected: str
    accepts: Callable[[int], bool]


def refused(name: str, call: ProbeCall) -> Check:
    """Expect any error: kernels that lack an interface answer otherwise than a filter."""
    return Check(name=f"{name}: refused", calls=(call,), expected="an error", accepts=is_error)


def is_error(result: int) -> bool:
    """Tell whether a call was refused."""
    return result < 0


def is_success(result: int) -> bool:
    """Tell whether a call was carried out."""
    return result >= 0


def equals(name: str, call: ProbeCall, value: int) -> Check:
    """Expect one result; a negative one is an error number."""
    shown = errno.errorcode.get(-value, str(value)) if value < 0 else str(value)
    return Check(name=name, calls=(call,), expected=shown, accepts=value.__eq__)


def _open(path: bytes) -> ProbeCall:
    return ProbeCall(syscall="openat", arguments=(_AT_FDCWD, path + b"\0", _CREATE, 0o644))


def identity_checks() -> Iterator[Check]:
    """Look at user, group and capabilities."""
    for name in ("getuid", "geteuid", "getgid"):
        yield equals(f"{name} is the entrant's", ProbeCall(syscall=name), ENTRANT_ID)
    yield equals(
        "no new privileges",
        ProbeCall(syscall="prctl", arguments=(_PR_GET_NO_NEW_PRIVS,)),
        1,
    )
    for capability in range(_CAPABILITIES):
        yield Check(
            name=f"capability {capability} is out of reach",
            calls=(ProbeCall(syscall="prctl", arguments=(_PR_CAPBSET_READ, capability)),),
            expected="0",
            accepts=(0, -errno.EINVAL).__contains__,
        )


def file_checks(profile: SandboxProfile) -> Iterator[Check]:
    """Open the file in `/output` first, so that it is descriptor 3, and ask for more than fits."""
    yield equals("/output can be written", _open(b"/output/probe"), 3)
    fill = ProbeCall(syscall="fallocate", arguments=(3, 0, 0, profile.output_bytes + 4096))
    yield equals("/output has its size", fill, -errno.ENOSPC)
    yield Check(
        name="/tmp can be written",  # noqa: S108 - a path in the container
        calls=(_open(b"/tmp/probe"),),
        expected="a descriptor",
        accepts=is_success,
    )
    root = _open(f"/{OPEN_FOLDER}/probe".encode())
    yield equals("the root is read-only", root, -errno.EROFS)
    yield equals("/input is read-only", _open(b"/input/probe"), -errno.EROFS)


def socket_checks(profile: SandboxProfile) -> Iterator[Check]:
    """Make a socket of every family, allowed and forbidden."""
    for family, (number, kind) in _FORBIDDEN_FAMILIES.items():
        yield refused(family, ProbeCall(syscall="socket", arguments=(number, kind, 0)))
    for allowed, (number, kind) in ALLOWED_FAMILIES.items():
        call = ProbeCall(syscall="socket", arguments=(number, kind, 0))
        if allowed in profile.socket_families:
            yield Check(
                name=f"{allowed}: works",
                calls=(call,),
                expected="a descriptor",
                accepts=is_success,
            )
        else:
            yield refused(allowed, call)


def _network(profile: SandboxProfile) -> Iterator[Check]:
    if SocketFamily.INET in profile.socket_families:
        # Descriptors 3 and 4 are the files, 5 is the AF_UNIX socket and 6 the AF_INET one.
        connect = ProbeCall(syscall="connect", arguments=(6, DOCUMENTATION_ADDRESS, 16))
        yield equals("there is no network", connect, -errno.ENETUNREACH)


def _processes(profile: SandboxProfile) -> Iterator[Check]:
    yield Check(
        name=PROCESS_LIMIT,
        calls=(FORK,) * (profile.pids + 1),
        expected="EAGAIN",
        accepts=lambda result: result == -errno.EAGAIN,
    )


def greedy_check(profile: SandboxProfile) -> Check:
    """Ask for more memory than the profile gives.

    That the call does not return is the answer, which the engine tells.
    """
    greedy = ProbeCall(
        syscall="mmap",
        arguments=(0, profile.memory_bytes + 2**24, _READ_WRITE, _POPULATE, -1, 0),
    )
    return Check(name="memory", calls=(greedy,), expected="a memory kill", accepts=is_error)


def probe_checks(profile: SandboxProfile) -> tuple[Check, ...]:
    """Return the checks in the order in which the probe makes them; the last is `greedy_check`."""
    filtered = ProbeCall(syscall="prctl", arguments=(_PR_GET_SECCOMP,))
    return (
        *identity_checks(),
        *file_checks(profile),
        *socket_checks(profile),
        *_network(profile),
        *(refused(name, call) for name, call in FORBIDDEN_CALLS.items()),
        equals("system calls are filtered", filtered, 2),
        refused("ptrace", ProbeCall(syscall="ptrace", arguments=(0,))),
        *_processes(profile),
        greedy_check(profile),
    )
