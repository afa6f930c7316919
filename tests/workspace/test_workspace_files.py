"""The workspace folder: whole files or none, locks that die with their process, remedies."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from manifests.errors import MalformedDocument, PlatformFault, RefusedByPolicy
from orchestrator.wiring import workspaces as wiring
from orchestrator.workspace.files.new_workspace import STAGING
from orchestrator.workspace.files.workspace_files import WorkspaceFiles, open_workspace
from orchestrator.workspace.initialise import WorkspaceMakers, initialise
from orchestrator.workspace.ports import FileAbsent, NotAWorkspace
from tests.support.killed_processes import die, exit_code

RUN = "0123456789abcdef"


def names_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


@pytest.fixture
def store(workspace_root: Path) -> WorkspaceFiles:
    return open_workspace(workspace_root)


def test_a_file_is_read_back_and_is_never_overwritten_by_create(store: WorkspaceFiles) -> None:
    store.create("runs/a/run.json", b"first")
    with pytest.raises(PlatformFault, match=r"run\.json: cannot write: it exists already"):
        store.create("runs/a/run.json", b"second")
    assert store.read("runs/a/run.json") == b"first"
    assert store.list_names("runs/a") == ("run.json",)


def test_replace_leaves_the_new_file_alone_in_its_folder(store: WorkspaceFiles) -> None:
    store.replace("runs/a/run.json", b"first")
    store.replace("runs/a/run.json", b"second")
    assert b"".join(store.stream("runs/a/run.json", 2)) == b"second"
    assert names_in(store.root / "runs/a") == ["run.json"]


def test_only_the_owner_reads_a_file_of_mode_0600(store: WorkspaceFiles) -> None:
    store.create("keys/other.agekey", b"secret", mode=0o600)
    assert (store.root / "keys/other.agekey").stat().st_mode & 0o777 == 0o600


def test_an_absent_file_is_none_or_a_fault_with_its_path(store: WorkspaceFiles) -> None:
    assert store.read_optional("runs/none") is None
    assert not store.exists("runs/none")
    assert store.list_names("runs/none") == ()
    with pytest.raises(FileAbsent, match="runs/none"):
        store.read("runs/none")


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../x", "runs/../../x", "runs/\0"])
def test_no_name_leads_out_of_the_workspace(store: WorkspaceFiles, name: str) -> None:
    with pytest.raises(PlatformFault, match="not a name inside the workspace"):
        store.read(name)


def test_a_link_and_a_pipe_are_not_read(store: WorkspaceFiles) -> None:
    (store.root / "runs/link").symlink_to("/etc/hostname")
    os.mkfifo(store.root / "runs/pipe")
    with pytest.raises(PlatformFault, match="symbolic link"):
        store.read("runs/link")
    with pytest.raises(PlatformFault, match="runs/pipe"):
        store.read("runs/pipe")


def test_a_writer_that_is_killed_leaves_the_old_file(store: WorkspaceFiles) -> None:
    """The kill comes after the new bytes are on the disk, just before they get their name."""
    store.replace("runs/a/run.json", b"old")
    script = (
        "import os, pathlib, signal, sys\n"
        "from orchestrator.workspace.files.workspace_files import open_workspace\n"
        "pathlib.Path.rename = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "open_workspace(pathlib.Path(sys.argv[1])).replace('runs/a/run.json', b'new')\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(store.root)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert store.read("runs/a/run.json") == b"old"
    assert store.list_names("runs/a") == ("run.json",)
    store.remove_temporaries("runs/a")
    assert names_in(store.root / "runs/a") == ["run.json"]


def test_a_run_is_alive_while_its_lock_is_held(store: WorkspaceFiles) -> None:
    assert not store.is_run_alive(RUN)
    with store.lock_run(RUN):
        assert store.is_run_alive(RUN)
        with pytest.raises(RefusedByPolicy, match=RUN), store.lock_run(RUN):
            pass
    assert not store.is_run_alive(RUN)


def test_a_killed_process_lets_go_of_its_run(store: WorkspaceFiles) -> None:
    script = (
        "import pathlib, sys\n"
        "from orchestrator.workspace.files.workspace_files import open_workspace\n"
        f"with open_workspace(pathlib.Path(sys.argv[1])).lock_run('{RUN}'):\n"
        "    print('held', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", script, str(store.root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        assert store.is_run_alive(RUN)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not store.is_run_alive(RUN)


def test_of_many_threads_one_gets_the_lock(store: WorkspaceFiles) -> None:
    barrier, got = threading.Barrier(8), []

    def race() -> None:
        barrier.wait()
        try:
            with store.lock_run(RUN):
                got.append(True)
                barrier.wait(5)
        except RefusedByPolicy:
            got.append(False)
            barrier.wait(5)

    threads = [threading.Thread(target=race) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == [False] * 7 + [True]


def test_intents_are_listed_until_they_are_removed(store: WorkspaceFiles) -> None:
    store.write_intent(RUN, {"image": "sha256:1"})
    store.write_intent(RUN, {"image": "sha256:2"})
    assert store.intents() == {RUN: {"image": "sha256:2"}}
    store.remove_intent(RUN)
    store.remove_intent(RUN)
    assert store.intents() == {}


def test_free_space_is_the_disks(store: WorkspaceFiles) -> None:
    assert 0 < store.free_bytes() < 2**60


def test_a_full_disk_is_named_with_path_and_remedy(
    small_disk: Path, workspace_makers: WorkspaceMakers
) -> None:
    initialise(small_disk, origin="example.org/piste", make=workspace_makers)
    store = open_workspace(small_disk)
    with pytest.raises(
        PlatformFault, match=r"runs/big: cannot write: the disk is full: free space"
    ):
        store.create("runs/big", bytes(1 << 20))
    assert names_in(small_disk / "runs") == []


def test_a_read_only_workspace_can_be_read_and_says_why_it_cannot_be_written(
    small_disk: Path, workspace_makers: WorkspaceMakers
) -> None:
    initialise(small_disk, origin="example.org/piste", make=workspace_makers)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    store = open_workspace(small_disk)
    assert store.list_names("editions") == ()
    assert not store.is_run_alive(RUN)
    with pytest.raises(PlatformFault, match="the file system is read-only"):
        store.create("runs/x", b"x")
    with pytest.raises(PlatformFault, match="the file system is read-only"), store.lock_run(RUN):
        pass


def test_a_folder_without_marker_is_no_workspace(tmp_path: Path) -> None:
    with pytest.raises(NotAWorkspace, match="piste init"):
        open_workspace(tmp_path)
    (tmp_path / "piste.json").write_text('{"workspace": "piste/9"}')
    with pytest.raises(MalformedDocument, match="version"):
        open_workspace(tmp_path)


def test_init_makes_private_keys_and_a_ledger(workspace_root: Path) -> None:
    keys = workspace_root / "keys"
    assert keys.stat().st_mode & 0o777 == 0o700
    for name in ("run.pem", "scorer.pem", "log.pem", "clips.agekey", "labels.agekey"):
        assert (keys / name).stat().st_mode & 0o777 == 0o600, name
    assert (workspace_root / "ledger.sqlite").is_file()
    assert not (workspace_root / STAGING).exists()


def test_init_refuses_a_foreign_folder_and_a_second_time(
    tmp_path: Path, workspace_root: Path, workspace_makers: WorkspaceMakers
) -> None:
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("years of work")
    with pytest.raises(RefusedByPolicy, match=r"not empty, it holds thesis\.tex"):
        initialise(foreign, origin="example.org/x", make=workspace_makers)
    assert names_in(foreign) == ["thesis.tex"]
    with pytest.raises(RefusedByPolicy, match="a workspace already"):
        initialise(workspace_root, origin="example.org/x", make=workspace_makers)


def test_an_init_that_fails_leaves_nothing(
    tmp_path: Path, workspace_makers: WorkspaceMakers
) -> None:
    def refuse(*_: object) -> None:
        raise PlatformFault("no ledger today")

    makers = WorkspaceMakers(
        stage=workspace_makers.stage,
        create_signing_keys=workspace_makers.create_signing_keys,
        create_ledger=refuse,
        generate_identity=workspace_makers.generate_identity,
        clock=workspace_makers.clock,
    )
    with pytest.raises(PlatformFault, match="no ledger today"):
        initialise(tmp_path / "new" / "workspace", origin="example.org/x", make=makers)
    assert not (tmp_path / "new" / "workspace").exists()


def init_and_die(root: Path, at: int) -> None:
    """Die at the `at`-th time that something is renamed, removed or flushed."""
    calls = itertools.count(1)

    def counting(function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: object, **options: object) -> object:
            if next(calls) == at:
                die()
            return function(*arguments, **options)

        return called

    for owner, name in ((Path, "rename"), (Path, "rmdir"), (os, "fsync")):
        setattr(owner, name, counting(getattr(owner, name)))
    wiring.create_workspace(root, origin="example.org/x")


@pytest.mark.parametrize("at", [1, 6, 12, 20, 21, 22, 23, 25, 28, 29, 30])
def test_an_init_that_was_killed_is_completed_by_the_next(
    tmp_path: Path, workspace_makers: WorkspaceMakers, at: int
) -> None:
    root = tmp_path / "workspace"
    killed = exit_code(init_and_die, root, at)
    assert killed in {0, -signal.SIGKILL}
    with contextlib.suppress(RefusedByPolicy):  # the kill came after the last step
        initialise(root, origin="example.org/x", make=workspace_makers)
    assert open_workspace(root).list_names("keys") == (
        "clips.agekey",
        "labels.agekey",
        "log.pem",
        "recipients.json",
        "run.pem",
        "scorer.pem",
    )
    assert names_in(root) == [
        "editions",
        "intake",
        "keys",
        "ledger.sqlite",
        "locks",
        "piste.json",
        "runs",
    ]
