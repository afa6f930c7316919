"""The diagnosing pass: what its container differs in, who may reach it, and what counts as a write."""

from __future__ import annotations

import ast
import io
import tarfile
from pathlib import Path

from orchestrator.entrants.rules.diagnosing_options import (
    diagnosing_options,
    program_writes,
    tmp_folder,
)
from orchestrator.entrants.rules.observations import Writes
from orchestrator.sandbox.rules.container_options import EntrantSpec, entrant_options
from sandbox_profiles.profile import load_profile

ROOT = Path(__file__).parents[2]
SPEC = EntrantSpec(
    run_id="0123456789abcdef",
    image_id="sha256:" + "5" * 64,
    platform="linux/amd64",
    input_volume="piste-0123456789abcdef-input8",
    output_volume="piste-0123456789abcdef-output8",
    profile=load_profile("certified"),
)


def test_the_diagnosing_pass_differs_in_root_user_and_one_capability_alone() -> None:
    usual, looser = entrant_options(SPEC), diagnosing_options(SPEC, tmp_in_root=True)
    host = {
        name: value
        for name, value in looser["HostConfig"].items()
        if value != usual["HostConfig"].get(name)
    }
    assert host == {"ReadonlyRootfs": False, "CapAdd": ["DAC_OVERRIDE"], "Tmpfs": {}}
    assert set(usual["HostConfig"]["Tmpfs"]) == {"/tmp"}
    others = {name for name in looser if looser[name] != usual.get(name)} - {"HostConfig"}
    assert others == {"User"}
    assert looser["HostConfig"]["NetworkMode"] == "none"
    assert looser["HostConfig"]["CapDrop"] == ["ALL"]
    kept = diagnosing_options(SPEC, tmp_in_root=False)["HostConfig"]["Tmpfs"]
    assert kept == usual["HostConfig"]["Tmpfs"]


def importers(module: str) -> set[str]:
    """Return the modules of the product that import `module`."""
    found = set()
    for package in ("manifests", "sandbox_profiles", "scorers", "orchestrator"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                names = [node.module] if isinstance(node, ast.ImportFrom) else []
                names += [a.name for a in node.names] if isinstance(node, ast.Import) else []
                if any(name == module for name in names):
                    found.add(".".join(path.relative_to(ROOT).with_suffix("").parts))
    return found


def test_a_writable_root_can_be_reached_from_a_dry_run_alone() -> None:
    entrants = "orchestrator.entrants"
    assert importers("orchestrator.entrants.rules.diagnosing_options") == {
        f"{entrants}.diagnose_run"
    }
    assert importers(f"{entrants}.diagnose_run") == {
        f"{entrants}.dry_run_diagnosis",
        f"{entrants}.dry_run_input",
    }
    assert importers(f"{entrants}.dry_run_diagnosis") == {f"{entrants}.dry_run"}
    rooms = ROOT / "orchestrator"
    others = [*rooms.glob("runs/*.py"), *rooms.glob("sandbox/*.py")]
    assert {"certify", "execute_run", "run_in_sandbox"} <= {path.stem for path in others}
    assert [path for path in others if "diagnose_run" in path.read_text()] == []


def test_what_the_engine_itself_changes_is_no_write_of_the_program() -> None:
    listed = ["/", "/etc", "/etc/hosts", "/etc/foo", "/sbin", "/sbin/docker-init", "/dev/shm"]
    listed += ["/app", "/app/a", "/app/a/b", "/tmp", "/output/predictions.jsonl", "/proc"]
    assert program_writes(listed) == Writes(outside=("/app/a/b", "/etc/foo"))
    listed += ["/tmp/a", "/tmp/a/b", "/tmpfile"]
    assert program_writes(listed) == Writes(
        outside=("/app/a/b", "/etc/foo", "/tmpfile"), in_tmp=("a/b",)
    )


def test_the_folder_for_tmp_is_open_to_every_user_and_nothing_else() -> None:
    with tarfile.open(fileobj=io.BytesIO(tmp_folder())) as tar:
        (member,) = tar.getmembers()
    assert (member.name, member.isdir(), oct(member.mode)) == ("tmp", True, "0o1777")
