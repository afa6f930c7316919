"""The numbered checks of `piste verify`: one list for the code, the output and the README."""

from __future__ import annotations

from enum import Enum


class Check(Enum):
    """One check: its number, its name, what is compared, and what is counted."""

    TREE = (
        1,
        "plain files",
        "regular files with safe names, none twice; a tar is in its one canonical form",
        "files",
    )
    BUNDLE = (
        2,
        "bundle complete",
        "the bundle's SHA256SUMS lists every file, and every line names a file with this digest",
        "files",
    )
    DERIVED = (
        3,
        "bundle derived",
        "bundle.json, keys and checking recipe are those that log, runs and format give",
        "files",
    )
    ANCHOR = (
        4,
        "trust anchor",
        "the key or origin that the auditor holds from elsewhere is the log's",
        "pins",
    )
    STATEMENTS = (
        5,
        "log statements",
        "numbered from 0 without a gap, in canonical form, each signed by the key in force",
        "statements",
    )
    COLUMNS = (
        6,
        "ledger columns",
        "the columns by which the ledger finds a statement are those of the signed statement",
        "statements",
    )
    RULES = (
        7,
        "log rules",
        "order and state machine of every run; editions, teams and labels only once",
        "statements",
    )
    QUOTA = (
        8,
        "quota",
        "no team has more counted runs or attempts than allowed; every void has a reason",
        "team entries",
    )
    CHECKPOINT = (
        9,
        "checkpoint",
        "the log's key signed exactly the tree that these statements form (RFC 6962)",
        "statements",
    )
    OLDER = (
        10,
        "older checkpoint",
        "the log extends the checkpoint that the auditor kept",
        "checkpoints",
    )
    TILES = (
        11,
        "log tiles",
        "the static tlog-tiles files are those of the log",
        "tiles",
    )
    SEAL = (
        12,
        "edition files",
        "edition, profile, vocabulary, seal and ciphertext list have the digests in the log",
        "files",
    )
    EDITION = (
        13,
        "edition agrees",
        "edition.yaml and seal.json say what the edition-sealed statement says",
        "editions",
    )
    PUBLISHED_KEYS = (
        14,
        "edition keys",
        "the keys that the seal published are the keys of the log",
        "keys",
    )
    CIPHERTEXTS = (
        15,
        "sealed clips",
        "the ciphertexts are those that sealed.sha256 lists, no more and no fewer",
        "files",
    )
    REVEAL = (
        16,
        "reveal",
        "revealed clip sums and labels are those that were committed to",
        "files",
    )
    RUNS = (
        17,
        "runs complete",
        "every run that ended has its folder, and every folder is of a run in the log",
        "runs",
    )
    LISTING = (
        18,
        "run folder",
        "SHA256SUMS and private.sha256 list every file, each with its digest",
        "files",
    )
    SIGNATURE = (
        19,
        "run signature",
        "SHA256SUMS is signed by a key that the log published for it, in force since the run",
        "signatures",
    )
    ENVELOPE = (
        20,
        "run envelope",
        "the in-toto statement is signed; its subjects are the files, its predicate the record",
        "envelopes",
    )
    RECORD = (
        21,
        "run record",
        "run.json says what the run's statements in the log say",
        "records",
    )
    IDENTITY = (
        22,
        "identities",
        "image, profile and clip set agree between log, edition and record",
        "runs",
    )
    KEPT = (
        23,
        "kept files",
        "predictions and every other kept file have the digests in the log",
        "files",
    )
    CARD = (
        24,
        "score cards",
        "each scored row has its card; labels, scorer, predictions and figures agree with the log",
        "cards",
    )
    PRIVATE_CARD = (
        25,
        "private cards",
        "the public card is the private one without its private part",
        "cards",
    )
    RESCORE = (
        26,
        "rescoring",
        "labels are those committed to, and scoring the kept predictions gives the same card",
        "cards",
    )

    def __init__(self, number: int, title: str, compares: str, unit: str) -> None:
        self.number = number
        self.title = title
        self.compares = compares
        self.unit = unit


def markdown_table() -> str:
    """Return the checks as the README shows them."""
    rows = [f"| {check.number} | {check.title} | {check.compares} |" for check in Check]
    return "\n".join(["| no. | check | what is compared |", "| --- | --- | --- |", *rows, ""])
