"""Show what `doctor` found: a table that ends with the verdict, or one JSON document."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from manifests.encoding import Json
from orchestrator.host.doctor import DoctorReport
from orchestrator.host.rules.host_findings import HostFinding, Status, Topic

_STYLES = {
    Status.OK: "green",
    Status.WARN: "yellow",
    Status.ABSENT: "dim",
    Status.FAIL: "bold red",
}


def doctor_document(report: DoctorReport) -> dict[str, Json]:
    """Return the report as `piste doctor --json` prints it, every profile's rows included."""
    engine = report.engine
    described: Json = None
    if engine is not None:
        described = {
            "docker": engine.docker,
            "api": engine.api,
            "runc": engine.runc,
            "containerd": engine.containerd,
            "kernel": engine.kernel,
            "operating_system": engine.operating_system,
            "architecture": engine.architecture,
            "store": engine.store,
            "cgroup": engine.cgroup_version,
            "runtimes": list(engine.runtimes),
            "cpus": engine.cpus,
            "memory_bytes": engine.memory_bytes,
        }
    return {
        "engine": described,
        "profiles": {
            trial.profile: {
                "may_run": report.may_run(trial.profile),
                "reasons": list(trial.reasons),
            }
            for trial in report.trials
        },
        "findings": [_plain(each) for each in _all(report)],
    }


def _plain(finding: HostFinding) -> dict[str, Json]:
    return {
        "topic": finding.topic.value,
        "name": finding.name,
        "profile": finding.profile,
        "status": finding.status.value,
        "seen": finding.seen,
        "remedy": finding.remedy,
    }


def _all(report: DoctorReport) -> list[HostFinding]:
    """Return every finding by topic, the sandbox's after the engine's."""
    order = list(Topic)
    tried = [finding for trial in report.trials for finding in trial.findings]
    return sorted((*report.findings, *tried), key=lambda each: order.index(each.topic))


def doctor_view(report: DoctorReport, *, first: str) -> RenderableType:
    """Return the table: all of the profile `first`, and of other profiles what does not hold."""
    table = Table(box=None, pad_edge=False, show_header=False)
    for _ in range(3):
        table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    topic = None
    for each in _all(report):
        if each.profile not in {None, first} and each.status in {Status.OK, Status.ABSENT}:
            continue
        shown = each.topic.value if each.topic is not topic else ""
        topic = each.topic
        table.add_row(
            Text(shown, style="bold"),
            Text(each.name if each.profile in {None, first} else f"{each.name} ({each.profile})"),
            Text(each.status.value, style=_STYLES[each.status]),
            _seen(each),
        )
    return Group(table, Text(), *_verdict(report, first))


def _seen(finding: HostFinding) -> Text:
    text = Text(finding.seen)
    if finding.remedy is not None:
        text.append(f"\n→ {finding.remedy}", style="yellow")
    return text


def _verdict(report: DoctorReport, first: str) -> Iterator[Text]:
    if report.engine is None:
        yield Text("no certified runs here: no Docker engine answers", style="bold red")
        return
    for trial in report.trials:
        yield _profile_line(report, trial.profile, trial.reasons)
    if report.may_run(first):
        yield Text(f"This host may do certified runs (profile {first}).", style="bold green")
    else:
        yield Text(f"This host may not do certified runs (profile {first}).", style="bold red")


def _profile_line(report: DoctorReport, profile: str, reasons: tuple[str, ...]) -> Text:
    if report.may_run(profile):
        return Text.assemble((f"{profile:<10}", "bold"), ("may run", "green"))
    failed = [f"{each.name}: {each.seen}" for each in report.findings if each.status is Status.FAIL]
    why = "; ".join((*reasons, *failed))
    return Text.assemble((f"{profile:<10}", "bold"), ("may not run: ", "red"), why)
