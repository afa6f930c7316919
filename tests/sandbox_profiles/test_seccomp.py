"""The filter allows what programs need and names nothing dangerous."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox_profiles.seccomp import SocketFamily, seccomp_document
from sandbox_profiles.seccomp_syscalls import ABSENT_SYSCALLS, ALLOWED_SYSCALLS

DOCUMENT = seccomp_document(tuple(SocketFamily))
FORBIDDEN = [
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "keyctl",
    "add_key",
    "request_key",
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "mount",
    "umount2",
    "move_mount",
    "fsopen",
    "fsmount",
    "open_tree",
    "mount_setattr",
    "pivot_root",
    "chroot",
    "unshare",
    "setns",
    "setxattr",
    "lsetxattr",
    "fsetxattr",
    "removexattr",
    "socketcall",
    "open_by_handle_at",
    "name_to_handle_at",
    "kexec_load",
    "init_module",
    "finit_module",
    "delete_module",
    "reboot",
    "swapon",
    "acct",
    "syslog",
    "settimeofday",
    "clock_settime",
    "adjtimex",
    "sethostname",
    "iopl",
    "ioperm",
    "modify_ldt",
    "kcmp",
    "pidfd_getfd",
    "memfd_secret",
    "quotactl",
    "fanotify_init",
    "lookup_dcookie",
]


def condition_holds(test: dict[str, Any], have: int) -> bool:
    value, second = int(test["value"]), int(test["valueTwo"])
    match test["op"]:
        case "SCMP_CMP_EQ":
            return have == value
        case "SCMP_CMP_GT":
            return have > value
        case "SCMP_CMP_MASKED_EQ":
            return have & value == second
        case operator:
            raise AssertionError(f"unknown operator {operator}")


def verdict(document: dict[str, Any], name: str, *arguments: int) -> tuple[str, int | None]:
    """Decide one call as the kernel would: the rules are disjoint, the rest is the default."""
    found = set()
    for rule in document["syscalls"]:
        if name not in rule["names"]:
            continue
        holds = all(condition_holds(test, arguments[test["index"]]) for test in rule["args"])
        if holds:
            found.add((rule["action"], rule.get("errnoRet")))
    assert len(found) <= 1, f"{name} has rules that disagree"
    return found.pop() if found else (document["defaultAction"], None)


def test_whatever_is_not_named_is_refused() -> None:
    assert DOCUMENT["defaultAction"] == "SCMP_ACT_ERRNO"
    assert verdict(DOCUMENT, "a_call_of_the_future") == ("SCMP_ACT_ERRNO", None)


@pytest.mark.parametrize("name", FORBIDDEN)
def test_a_dangerous_call_is_refused(name: str) -> None:
    assert verdict(DOCUMENT, name, 0)[0] == "SCMP_ACT_ERRNO"


def test_each_call_stands_once() -> None:
    names = [name for group in ALLOWED_SYSCALLS.values() for name in group]
    names += [*ABSENT_SYSCALLS, "clone", "personality", "socket", "socketpair"]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", ["clone3", "splice", "tee", "vmsplice"])
def test_what_libraries_can_do_without_looks_absent(name: str) -> None:
    assert verdict(DOCUMENT, name, 0) == ("SCMP_ACT_ERRNO", 38)


@pytest.mark.parametrize("family", range(64))
def test_only_the_named_families_open(family: int) -> None:
    certified = verdict(DOCUMENT, "socket", family)
    strict = verdict(seccomp_document([SocketFamily.UNIX]), "socket", family)
    refused = ("SCMP_ACT_ERRNO", 97)
    allowed = ("SCMP_ACT_ALLOW", None)
    assert certified == (allowed if family in {1, 2, 10, 16} else refused)
    assert strict == (allowed if family == 1 else refused)


@pytest.mark.parametrize("family", [2**32 + 40, 2**32 + 1, 2**64 - 1])
def test_high_bits_do_not_smuggle_a_family(family: int) -> None:
    assert verdict(DOCUMENT, "socket", family)[0] == "SCMP_ACT_ERRNO"


@pytest.mark.parametrize("family", [0, 2, 30, 40])
def test_pairs_of_sockets_are_local(family: int) -> None:
    assert verdict(DOCUMENT, "socketpair", 1)[0] == "SCMP_ACT_ALLOW"
    assert verdict(DOCUMENT, "socketpair", family)[0] == "SCMP_ACT_ERRNO"


@pytest.mark.parametrize("bit", [17, 25, 26, 27, 28, 29, 30])
def test_clone_makes_no_namespace(bit: int) -> None:
    threads = 0x3D0F00
    assert verdict(DOCUMENT, "clone", threads)[0] == "SCMP_ACT_ALLOW"
    assert verdict(DOCUMENT, "clone", 17)[0] == "SCMP_ACT_ALLOW"
    assert verdict(DOCUMENT, "clone", 17 | 1 << bit)[0] == "SCMP_ACT_ERRNO"


def test_the_personality_stays_what_it_is() -> None:
    assert verdict(DOCUMENT, "personality", 0xFFFFFFFF)[0] == "SCMP_ACT_ALLOW"
    for persona in (0x0040000, 0x0400000, 8):  # no randomisation, exec from read, 32 bit
        assert verdict(DOCUMENT, "personality", persona)[0] == "SCMP_ACT_ERRNO"


def test_no_32_bit_calls_are_known() -> None:
    assert {entry["architecture"] for entry in DOCUMENT["archMap"]} == {
        "SCMP_ARCH_X86_64",
        "SCMP_ARCH_AARCH64",
    }
    assert all(entry["subArchitectures"] == [] for entry in DOCUMENT["archMap"])
