"""What the probe expects under gVisor, where the entrant's calls end in the sentry.

The sentry is a kernel in a program: it answers the calls itself, and what it asks of the host it
filters with a system-call filter of its own. Our filter is not used. So the probe first shows that
a sentry answers; then it leaves out the calls that the sentry carries out within itself
(`ANSWERED_WITHIN`), and keeps those that must be refused by any kernel or reach the host's files.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from typing import Final

from orchestrator.sandbox.rules.elf import ProbeCall
from orchestrator.sandbox.rules.probe_checks import (
    ALLOWED_FAMILIES,
    DOCUMENTATION_ADDRESS,
    FORBIDDEN_CALLS,
    FORK,
    PROCESS_LIMIT,
    Check,
    file_checks,
    identity_checks,
    is_success,
    refused,
    socket_checks,
)
from sandbox_profiles.profile import SandboxProfile
from sandbox_profiles.seccomp import SocketFamily

OWN_KERNEL: Final = "gVisor's own kernel answers"
ANSWERED_WITHIN: Final[Mapping[str, str]] = {
    "io_uring": "its requests are carried out by the sentry; the host's io_uring is never asked",
    "keyrings": "they are the sentry's; the host's, which no namespace separates, are not seen",
    "a user namespace by unshare": "it gives rights in the sentry only",
    "a user namespace by clone": "it gives rights in the sentry only",
    "clone3": "it is refused elsewhere because a filter cannot read its arguments; none is used",
}
"""Forbidden call → why it may succeed here. `ptrace` is left out too: it reaches guests only."""

_AT_FDCWD: Final = -100
_CREATE: Final = 0o102  # O_CREAT | O_RDWR
_INET, _DATAGRAM = 2, 2
_FIRST_SOCKET: Final = 5  # 3 and 4 are the files in /output and /tmp
_NEW_USER_AND_MOUNTS: Final = 0x10020000
_REMOUNT: Final = 32


def _own_kernel() -> Check:
    """Open a file that only the sentry's `/proc` has: the others' checks would be void on runc."""
    call = ProbeCall(syscall="openat", arguments=(_AT_FDCWD, b"/proc/sentry-meminfo\0", 0, 0))
    return Check(name=OWN_KERNEL, calls=(call,), expected="a descriptor", accepts=is_success)


def _network(profile: SandboxProfile) -> Iterator[Check]:
    """Ask for a route by a datagram socket: it sends nothing, so that no silence looks like one.

    The sentry's own stack says that the host is unreachable where Linux says the network is.
    """
    if SocketFamily.INET not in profile.socket_families:
        return
    opened = sum(family in profile.socket_families for family in ALLOWED_FAMILIES)
    socket = ProbeCall(syscall="socket", arguments=(_INET, _DATAGRAM, 0))
    route = ProbeCall(
        syscall="connect", arguments=(_FIRST_SOCKET + opened, DOCUMENTATION_ADDRESS, 16)
    )
    yield Check(
        name="there is no network",
        calls=(socket, route),
        expected="ENETUNREACH or EHOSTUNREACH",
        accepts=(-errno.ENETUNREACH, -errno.EHOSTUNREACH).__contains__,
    )


def _input_in_an_own_namespace() -> Check:
    """Try to make `/input` writable with the rights of an own user namespace."""
    own = ProbeCall(syscall="unshare", arguments=(_NEW_USER_AND_MOUNTS,))
    user = FORBIDDEN_CALLS["a user namespace by unshare"]
    remount = ProbeCall(syscall="mount", arguments=(0, b"/input\0", 0, _REMOUNT, 0))
    write = ProbeCall(syscall="openat", arguments=(_AT_FDCWD, b"/input/own\0", _CREATE, 0o644))
    return Check(
        name="/input is read-only in an own namespace",
        calls=(own, user, remount, write),
        expected="EROFS",
        accepts=(-errno.EROFS).__eq__,
    )


def sentry_checks(profile: SandboxProfile) -> tuple[Check, ...]:
    """Return the checks in the order in which the probe makes them; limits have their own probes.

    The sentry ends at its limits, and the whole container with it.
    """
    kept = {name: call for name, call in FORBIDDEN_CALLS.items() if name not in ANSWERED_WITHIN}
    return (
        *identity_checks(),
        *file_checks(profile),
        *socket_checks(profile),
        *_network(profile),
        _own_kernel(),
        *(refused(name, call) for name, call in kept.items()),
        _input_in_an_own_namespace(),
    )


def process_check(profile: SandboxProfile) -> Check:
    """Start a process more than may be; every one takes at least one thread of the host."""
    return Check(
        name=PROCESS_LIMIT,
        calls=(FORK,) * (profile.pids + 1),
        expected="an end before all could start",
        accepts=lambda result: result == -errno.EAGAIN,
    )


def ended_at_process_limit(
    results: list[int], *, asked: int, exit_code: int, memory_killed: bool
) -> bool:
    """Tell whether starting `asked` processes met the limit.

    Either the sentry answered that it could not, or it ended after some, not for want of memory.
    """
    if -errno.EAGAIN in results:
        return True
    return 0 < len(results) < asked and exit_code != 0 and not memory_killed
