"""What the probe tries inside the sandbox, and which answers the sandbox has to give."""

from __future__ import annotations

import errno
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from manifests.names import ENTRANT_ID
from orchestrator.core.elf import ProbeCall
from sandbox_profiles.profile import SandboxProfile
from sandbox_profiles.seccomp import SocketFamily

_AT_FDCWD: Final = -100
_CREATE: Final = 0o102  # O_CREAT | O_RDWR
_STREAM, _DATAGRAM, _RAW = 1, 2, 3
_PR_GET_SECCOMP, _PR_CAPBSET_READ, _PR_GET_NO_NEW_PRIVS = 21, 23, 39
_CAPABILITIES: Final = 41
_CLONE_NEWUSER: Final = 0x10000000
_SIGCHLD: Final = 17
_POPULATE: Final = 0x8022  # MAP_POPULATE | MAP_ANONYMOUS | MAP_PRIVATE
_READ_WRITE: Final = 3
_DOCUMENTATION_ADDRESS: Final = struct.pack(
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
_ALLOWED_FAMILIES: Final = {
    SocketFamily.UNIX: (1, _STREAM),
    SocketFamily.INET: (2, _STREAM),
    SocketFamily.NETLINK: (16, _RAW),
}
_FORBIDDEN_CALLS: Final = {
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


def _refused(name: str, call: ProbeCall) -> Check:
    """Any error will do: kernels that lack an interface answer otherwise than a filter."""
    return Check(name=f"{name}: refused", calls=(call,), expected="an error", accepts=_is_error)


def _is_error(result: int) -> bool:
    return result < 0


def _is_success(result: int) -> bool:
    return result >= 0


def _equals(name: str, call: ProbeCall, value: int) -> Check:
    shown = errno.errorcode.get(-value, str(value)) if value < 0 else str(value)
    return Check(name=name, calls=(call,), expected=shown, accepts=value.__eq__)


def _open(path: bytes) -> ProbeCall:
    return ProbeCall(syscall="openat", arguments=(_AT_FDCWD, path + b"\0", _CREATE, 0o644))


def _identity() -> Iterator[Check]:
    for name in ("getuid", "geteuid", "getgid"):
        yield _equals(f"{name} is the entrant's", ProbeCall(syscall=name), ENTRANT_ID)
    yield _equals(
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


def _files(profile: SandboxProfile) -> Iterator[Check]:
    """Open the file in `/output` first, so that it is descriptor 3, and ask for more than fits."""
    yield _equals("/output can be written", _open(b"/output/probe"), 3)
    fill = ProbeCall(syscall="fallocate", arguments=(3, 0, 0, profile.output_bytes + 4096))
    yield _equals("/output has its size", fill, -errno.ENOSPC)
    yield Check(
        name="/tmp can be written",  # noqa: S108 - a path in the container
        calls=(_open(b"/tmp/probe"),),
        expected="a descriptor",
        accepts=_is_success,
    )
    yield _equals("the root is read-only", _open(b"/probe-root"), -errno.EROFS)
    yield _equals("/input is read-only", _open(b"/input/probe"), -errno.EROFS)


def _sockets(profile: SandboxProfile) -> Iterator[Check]:
    for family, (number, kind) in _FORBIDDEN_FAMILIES.items():
        yield _refused(family, ProbeCall(syscall="socket", arguments=(number, kind, 0)))
    for allowed, (number, kind) in _ALLOWED_FAMILIES.items():
        call = ProbeCall(syscall="socket", arguments=(number, kind, 0))
        if allowed in profile.socket_families:
            yield Check(
                name=f"{allowed}: works",
                calls=(call,),
                expected="a descriptor",
                accepts=_is_success,
            )
        else:
            yield _refused(allowed, call)
    if SocketFamily.INET in profile.socket_families:
        # Descriptors 3 and 4 are the files, 5 is the AF_UNIX socket and 6 the AF_INET one.
        connect = ProbeCall(syscall="connect", arguments=(6, _DOCUMENTATION_ADDRESS, 16))
        yield _equals("there is no network", connect, -errno.ENETUNREACH)


def _processes(profile: SandboxProfile) -> Iterator[Check]:
    fork = ProbeCall(syscall="clone", arguments=(_SIGCHLD,), child_pauses=True)
    yield Check(
        name="the process limit acts",
        calls=(fork,) * (profile.pids + 1),
        expected="EAGAIN",
        accepts=lambda result: result == -errno.EAGAIN,
    )


def probe_checks(profile: SandboxProfile) -> tuple[Check, ...]:
    """Return the checks in the order in which the probe makes them.

    The last one asks for more memory than the profile gives; that it does not return is the answer,
    which the engine tells.
    """
    greedy = ProbeCall(
        syscall="mmap",
        arguments=(0, profile.memory_bytes + 2**24, _READ_WRITE, _POPULATE, -1, 0),
    )
    forbidden = [_refused(name, call) for name, call in _FORBIDDEN_CALLS.items()]
    if profile.runtime == "runc":
        filtered = ProbeCall(syscall="prctl", arguments=(_PR_GET_SECCOMP,))
        forbidden.append(_equals("system calls are filtered", filtered, 2))
        forbidden.append(_refused("ptrace", ProbeCall(syscall="ptrace", arguments=(0,))))
    return (
        *_identity(),
        *_files(profile),
        *_sockets(profile),
        *forbidden,
        *_processes(profile),
        Check(name="memory", calls=(greedy,), expected="a memory kill", accepts=_is_error),
    )
