"""Check 21: a run's record is what its statements in the log say."""

from __future__ import annotations

from pydantic import ValidationError

from manifests.encoding import parse_json_object
from manifests.errors import ClaimDoesNotHold, MalformedDocument
from manifests.runs import RunRecord
from manifests.text import escape_untrusted
from orchestrator.evidence.rules.catalogue import Check
from orchestrator.evidence.rules.check_log import LogFacts
from orchestrator.evidence.rules.findings import Findings
from orchestrator.evidence.rules.folders import Folder
from orchestrator.runs.rules.run_files import RECORD, record_bytes
from orchestrator.runs.rules.run_record import RunHistory, run_record


def parse_record(data: bytes, *, source: str) -> RunRecord:
    """Read run.json strictly, in the one form in which it is written.

    Raises:
        MalformedDocument: with the field that is wrong.
        ClaimDoesNotHold: when the same record would be written otherwise.

    """
    parse_json_object(data, source=source)  # duplicate keys and NaN are refused here
    try:
        record = RunRecord.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        field = escape_untrusted(".".join(str(part) for part in first["loc"]), 80)
        raise MalformedDocument(f"{source}: field {field}: {first['msg']}") from error
    if record_bytes(record) != data:
        raise ClaimDoesNotHold(f"{source}: the record is not in the form in which it is written")
    return record


def read_record(findings: Findings, folder: Folder) -> RunRecord | None:
    """Return the folder's record; a malformed one is a fault of check 21."""
    with findings.judging(Check.RECORD):
        source = f"{folder.place}/{RECORD}"
        return parse_record(folder.read(RECORD), source=source)
    return None


def check_record(
    findings: Findings, record: RunRecord, *, history: RunHistory, log: LogFacts, place: str
) -> None:
    """Compare a record with the fold of the run's statements.

    `certified_run` is k when the record was written: a void of an earlier run, later, lowers the k
    of those behind it and does not make their records false.
    """
    expected = run_record(history, certified_run=record.certified_run)
    differing = sorted(
        name for name in RunRecord.model_fields if getattr(record, name) != getattr(expected, name)
    )
    findings.require(
        Check.RECORD,
        not differing,
        f"{place}/{RECORD}: differs from the log in {', '.join(differing[:5])}",
    )
    written = log.run_number(history, at=max(history.positions))
    now = log.run_number(history, at=log.size)
    if not _between(record.certified_run, now, written):
        text = f"{place}/{RECORD}: says run {record.certified_run} of the quota, the log says {now}"
        findings.fault(Check.RECORD, text)


def _between(claimed: int | None, now: int | None, written: int | None) -> bool:
    if claimed is None or now is None or written is None:
        return claimed == now
    return now <= claimed <= written
