"""piste doctor, as typed, where no engine answers; with one: test_doctor_limits.py."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Type = Callable[..., Any]


@pytest.fixture(autouse=True)
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")


def test_without_an_engine_it_ends_with_4_and_says_how_to_start_one(typed: Type) -> None:
    said = typed("doctor")
    assert (said.code, said.err) == (4, "")
    assert "no Docker engine answers at unix:///nowhere.sock" in said.out
    assert "sudo systemctl start docker" in said.out
    assert "clock" in said.out, "the host is examined all the same"
    assert said.out.rstrip().endswith("no certified runs here: no Docker engine answers")


def test_with_json_stdout_is_one_document(typed: Type) -> None:
    said = typed("doctor", "--json", "--profile", "strict")
    document = json.loads(said.out)
    assert said.code == 4
    assert set(document) == {"engine", "profiles", "findings"}
    assert {"topic", "name", "profile", "status", "seen", "remedy"} == set(document["findings"][0])


def test_the_disk_of_the_named_workspace_is_judged(typed: Type) -> None:
    assert typed("init", "workspace").code == 0
    said = typed("doctor", "-w", "workspace", "--json")
    disk = [each for each in json.loads(said.out)["findings"] if each["topic"] == "disk"]
    assert str(Path("workspace").absolute()) in disk[0]["seen"]


def test_an_unknown_profile_is_a_usage_error(typed: Type) -> None:
    said = typed("doctor", "--profile", "lenient")
    assert said.code == 2
    assert "lenient" in said.err
    assert "Traceback" not in said.err
