"""The system-call filter: an allow-list in the engine's own JSON form.

Whatever is not named is refused with EPERM. The socket families and the few calls whose refusal
needs another error number, so that C libraries fall back, are spelled out here.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Final

from sandbox_profiles.seccomp_syscalls import ABSENT_SYSCALLS, ALLOWED_SYSCALLS

_EAFNOSUPPORT: Final = 97
_ENOSYS: Final = 38

_NAMESPACE_FLAGS: Final = 0x7E020000
"""CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET}: clone(2) may set none of them."""

_PERSONALITIES: Final = (0x0, 0xFFFFFFFF)
"""PER_LINUX and the question which personality is set."""

_HIGHEST_FAMILY: Final = 45
"""AF_MCTP; above it there is no family in any kernel that we know."""


class SocketFamily(StrEnum):
    """The address families that a profile can let a container open sockets of.

    AF_VSOCK, which leads past the network namespace to the hypervisor, AF_ALG, AF_PACKET and all
    others have no name here.
    """

    UNIX = "AF_UNIX"
    INET = "AF_INET"
    INET6 = "AF_INET6"
    NETLINK = "AF_NETLINK"


_FAMILY_NUMBERS: Final = {
    SocketFamily.UNIX: 1,
    SocketFamily.INET: 2,
    SocketFamily.INET6: 10,
    SocketFamily.NETLINK: 16,
}


def _argument(index: int, value: int, operator: str, second: int = 0) -> dict[str, Any]:
    return {"index": index, "value": value, "valueTwo": second, "op": operator}


def _allow(names: Iterable[str], *arguments: dict[str, Any]) -> dict[str, Any]:
    return {"names": sorted(names), "action": "SCMP_ACT_ALLOW", "args": list(arguments)}


def _refuse(names: Iterable[str], errno: int, *arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        "names": sorted(names),
        "action": "SCMP_ACT_ERRNO",
        "errnoRet": errno,
        "args": list(arguments),
    }


def _socket_rules(families: Iterable[SocketFamily]) -> list[dict[str, Any]]:
    """One rule a family, for rules are OR-ed and the conditions within one are AND-ed.

    The refusals of the known families exist for their error number only: a program that asks for
    IPv6 expects EAFNOSUPPORT. What matches no rule at all is refused as every other call is.
    """
    allowed = {_FAMILY_NUMBERS[family] for family in families}
    rules = [_allow(["socket"], _argument(0, number, "SCMP_CMP_EQ")) for number in sorted(allowed)]
    rules += [
        _refuse(["socket"], _EAFNOSUPPORT, _argument(0, number, "SCMP_CMP_EQ"))
        for number in range(_HIGHEST_FAMILY + 1)
        if number not in allowed
    ]
    rules.append(_refuse(["socket"], _EAFNOSUPPORT, _argument(0, _HIGHEST_FAMILY, "SCMP_CMP_GT")))
    unix = _FAMILY_NUMBERS[SocketFamily.UNIX]
    rules.append(_allow(["socketpair"], _argument(0, unix, "SCMP_CMP_EQ")))
    return rules


def seccomp_document(families: Iterable[SocketFamily]) -> dict[str, Any]:
    """Return the filter for x86_64 and aarch64, 64-bit calls only."""
    rules = [_allow(names) for _, names in sorted(ALLOWED_SYSCALLS.items())]
    rules.append(_allow(["clone"], _argument(0, _NAMESPACE_FLAGS, "SCMP_CMP_MASKED_EQ")))
    rules += [
        _allow(["personality"], _argument(0, value, "SCMP_CMP_EQ")) for value in _PERSONALITIES
    ]
    rules += _socket_rules(families)
    rules.append(_refuse(ABSENT_SYSCALLS, _ENOSYS))
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "archMap": [
            {"architecture": "SCMP_ARCH_X86_64", "subArchitectures": []},
            {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": []},
        ],
        "syscalls": rules,
    }
