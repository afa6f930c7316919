"""Commands of the auditor: verify what was published, and export it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.app import app
from orchestrator.cli.options import CURRENT_FOLDER, AsJson, Workspace

if TYPE_CHECKING:
    from orchestrator.evidence.verify import Report, VerifyRequest

PANEL = "Auditors"


@app.command(rich_help_panel=PANEL)
def verify(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH", help="A run folder, an edition, a workspace, a bundle or a receipt."
        ),
    ],
    labels: Annotated[
        Path | None, typer.Option(help="Revealed labels: score the kept predictions anew.")
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="A checkpoint that was kept: the log must extend it.")
    ] = None,
    key: Annotated[
        list[Path] | None,
        typer.Option(help="A public key (PEM) from elsewhere that the log must have published."),
    ] = None,
    origin: Annotated[
        str | None, typer.Option(help="The log's name, as the organizer announced it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check published evidence by numbered checks, offline, without keys or clips."""
    from orchestrator.cli.views.console import print_json
    from orchestrator.cli.views.receipt_view import receipt_bytes
    from orchestrator.evidence.verify import verify_evidence

    receipt = receipt_bytes(path)
    if receipt is not None:
        _verify_receipt(receipt, path, keys=key or [], as_json=as_json)
        return
    request = _request(path, labels=labels, checkpoint=checkpoint, keys=key or [], origin=origin)
    report = verify_evidence(request)
    if as_json:
        print_json(report.as_document())
    else:
        _show(report)
    if not report.holds:
        raise typer.Exit(1)


@app.command(rich_help_panel=PANEL)
def export(
    target: Annotated[
        str, typer.Argument(metavar="RUN|EDITION", help="A run's id or an edition's name.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The new tar.")],
    bagit: Annotated[bool, typer.Option("--bagit", help="As a BagIt bag, for archives.")] = False,
    private: Annotated[
        bool, typer.Option("--private", help="With the run's private card, for its entrant.")
    ] = False,
    log: Annotated[
        bool, typer.Option("--log", help="With the log as static tlog-tiles files.")
    ] = False,
    workspace: Workspace = CURRENT_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Write the public evidence as one tar: the same evidence gives the same bytes."""
    from orchestrator.cli.views.console import print_json, say
    from orchestrator.evidence.export import ExportRequest, export_bundle
    from orchestrator.evidence.files.evidence_source import LEDGER_FILE
    from orchestrator.evidence.files.staged_tar import stage_tar
    from orchestrator.ledger.sql.sql_store import open_sql_ledger
    from orchestrator.workspace.files.workspace_files import open_workspace

    store = open_workspace(workspace)
    request = ExportRequest(target=target, private=private, tiles=log, bag=bagit)
    with stage_tar(output) as staged:
        done = export_bundle(
            request, store=store, ledger=open_sql_ledger(workspace / LEDGER_FILE), staged=staged
        )
    if as_json:
        print_json({"path": str(output), "files": done.files, **done.document.model_dump()})
        return
    say(f"exported {done.document.edition}: {len(done.document.runs)} runs, {done.files} files")
    say(f"  {output}")
    say(f"Check it anywhere: piste verify {output}, or CHECK.md in it without piste")


def _request(
    path: Path,
    *,
    labels: Path | None,
    checkpoint: Path | None,
    keys: list[Path],
    origin: str | None,
) -> VerifyRequest:
    from orchestrator.evidence.files.evidence_source import open_evidence
    from orchestrator.evidence.rules.check_signatures import read_public_key
    from orchestrator.evidence.verify import VerifyRequest
    from orchestrator.evidence.verify_editions import GivenLabels
    from orchestrator.support.files.input_files import read_input_file

    tree, kind, ledger = open_evidence(path)
    pinned = (read_public_key(read_input_file(k), role="run", source=str(k)) for k in keys)
    return VerifyRequest(
        tree=tree,
        kind=kind,
        ledger=ledger,
        labels=None
        if labels is None
        else GivenLabels(source=str(labels), data=read_input_file(labels)),
        older_checkpoint=None if checkpoint is None else read_input_file(checkpoint),
        key_ids=tuple(key.key_id for key in pinned),
        origin=origin,
    )


def _verify_receipt(data: bytes, path: Path, *, keys: list[Path], as_json: bool) -> None:
    from orchestrator.cli.views.console import print_json
    from orchestrator.cli.views.receipt_view import (
        receipt_document,
        show_receipt,
        verify_receipt_file,
    )
    from orchestrator.evidence.rules.check_signatures import read_public_key
    from orchestrator.support.files.input_files import read_input_file

    pinned = (read_public_key(read_input_file(k), role="run", source=str(k)) for k in keys)
    found = verify_receipt_file(data, path, key_ids=tuple(key.key_id for key in pinned))
    if as_json:
        print_json(receipt_document(found))
        return
    show_receipt(found, pinned=bool(keys))


def _show(report: Report) -> None:
    from orchestrator.cli.views.console import say

    say(f"{report.kind} {report.place}")
    for result in report.results:
        count = f"{result.compared} {result.check.unit}" if result.compared else ""
        say(f"{result.check.number:>3}  {result.result:<8}{result.check.title:<18}{count}")
        say(f"     {result.check.compares}")
        for fault in result.faults:
            say(f"     FALSE: {fault}")
        if result.fault_count > len(result.faults):
            say(f"     and {result.fault_count - len(result.faults)} more")
        for note in result.notes:
            say(f"     {note}")
    say("holds" if report.holds else "does not hold")
