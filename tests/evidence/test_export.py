"""An export is deterministic, complete, checkable without piste, and holds nothing secret."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from pymerkle import InmemoryTree
from securesystemslib.dsse import Envelope as ForeignEnvelope
from securesystemslib.signer._key import SSlibKey

from manifests.errors import ClaimDoesNotHold, RefusedByPolicy
from orchestrator.evidence.rules.bundle import LOG_CHECKPOINT, LOG_ENTRIES, parse_bundle
from orchestrator.evidence.rules.catalogue import Check
from orchestrator.ledger.rules.checkpoint import parse_checkpoint
from orchestrator.ledger.rules.tiles import EntryBundle, Tile, parse_entry_bundle, parse_tile
from orchestrator.runs.rules.run_files import PRIVATE_CARD, is_private
from tests.support.bundle_edits import Files, digest_of, entries_of, flipped, pack, resummed, unpack
from tests.support.synthetic_evidence import (
    EDITION,
    OTHER_EDITION,
    SECRET_LOG,
    Scenario,
    add_run,
    export,
    failed,
    new_scenario,
    salted_labels,
    shared_bundle,
    shared_revealed_bundle,
    shared_story,
    verify,
)


@pytest.fixture(scope="module")
def story() -> Scenario:
    return shared_story()


@pytest.fixture(scope="module")
def bundle() -> Path:
    return shared_bundle()


@pytest.fixture(scope="module")
def revealed() -> Path:
    return shared_revealed_bundle()


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle with one run and a short log: each statement costs a shell some processes."""
    scenario = new_scenario(tmp_path_factory.mktemp("short") / "workspace")
    add_run(scenario, "only")
    return export(scenario, EDITION, tmp_path_factory.mktemp("bundle") / "bundle.tar")


def _unpacked(path: Path, folder: Path) -> Path:
    subprocess.run(["tar", "-xf", path, "-C", folder], check=True)
    [top] = folder.iterdir()
    return top


def _check(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "check.sh"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"]},
    )


def test_the_same_evidence_gives_the_same_bytes(
    story: Scenario, bundle: Path, tmp_path: Path
) -> None:
    assert export(story, EDITION, tmp_path / "again.tar").read_bytes() == bundle.read_bytes()


def test_a_copy_of_the_workspace_gives_the_same_bytes(
    story: Scenario, bundle: Path, tmp_path: Path
) -> None:
    copy = Scenario(Path(shutil.copytree(story.root, tmp_path / "copy")))
    for path in (copy.root / "runs").rglob("*"):
        os.utime(path, (0, 0))
    assert digest_of(export(copy, EDITION, tmp_path / "again.tar")) == digest_of(bundle)


def test_an_edition_holds_every_run_that_ended_and_the_whole_log(
    story: Scenario, bundle: Path
) -> None:
    files = unpack(bundle)
    document = parse_bundle(files["bundle.json"], source="bundle.json")
    names = ("first", "voided", "crashed", "second")
    assert document.runs == tuple(sorted(story.runs[name] for name in names))
    assert document.statements == story.open().ledger.size()
    assert entries_of(files) == [leaf.envelope for leaf in story.open().ledger.stored_leaves()]


def test_a_run_holds_itself_its_edition_and_the_whole_log(story: Scenario, tmp_path: Path) -> None:
    files = unpack(export(story, story.runs["other"], tmp_path / "run.tar"))
    assert {name.split("/")[1] for name in files if name.startswith("runs/")} == {
        story.runs["other"]
    }
    assert {name.split("/")[1] for name in files if name.startswith("editions/")} == {OTHER_EDITION}
    assert len(entries_of(files)) == story.open().ledger.size()


def _secrets(story: Scenario) -> list[bytes]:
    keys = [path.read_bytes() for path in (story.root / "keys").iterdir() if path.is_file()]
    lines = [line for data in keys for line in data.splitlines() if len(line) > 30]
    private = [line for line in lines if b"age1" not in line and b"{" not in line]
    labels = salted_labels(story).splitlines()
    return [SECRET_LOG, b"PRIVATE KEY", b"AGE-SECRET-KEY", b"age-encryption.org", *private, *labels]


@pytest.mark.parametrize("options", [{}, {"bag": True}, {"tiles": True}])
def test_nothing_that_must_stay_leaves(
    options: dict[str, bool], story: Scenario, tmp_path: Path
) -> None:
    data = export(story, EDITION, tmp_path / "bundle.tar", **options).read_bytes()
    found = [secret for secret in _secrets(story) if secret in data]
    assert len(_secrets(story)) > 8
    assert found == []
    names = unpack(tmp_path / "bundle.tar")
    assert [name for name in names if is_private(name)] == []


def test_a_private_card_leaves_for_its_entrant_alone(story: Scenario, tmp_path: Path) -> None:
    run_id = story.runs["first"]
    files = unpack(export(story, run_id, tmp_path / "run.tar", private=True))
    private = [name for name in files if is_private(name)]
    assert private == [
        f"runs/{run_id}/{PRIVATE_CARD}",
        f"runs/{run_id}/scores/labels-v2/{PRIVATE_CARD}",
    ]
    report = verify(tmp_path / "run.tar")
    assert failed(report) == set()
    compared = {one.check: one.compared for one in report.results}
    assert compared[Check.PRIVATE_CARD] == 2


def test_private_cards_of_a_whole_edition_are_refused(story: Scenario, tmp_path: Path) -> None:
    with pytest.raises(RefusedByPolicy, match="one entrant each"):
        export(story, EDITION, tmp_path / "bundle.tar", private=True)
    assert list(tmp_path.iterdir()) == []


def test_a_run_under_way_and_an_unknown_name_are_refused(story: Scenario, tmp_path: Path) -> None:
    with pytest.raises(RefusedByPolicy, match="export it when it has ended"):
        export(story, story.runs["pending"], tmp_path / "bundle.tar")
    with pytest.raises(RefusedByPolicy, match="neither a run nor an edition"):
        export(story, "nothing-2026", tmp_path / "bundle.tar")


def test_a_file_that_is_there_is_never_replaced(story: Scenario, tmp_path: Path) -> None:
    (tmp_path / "bundle.tar").write_bytes(b"mine")
    with pytest.raises(RefusedByPolicy, match="never replaces"):
        export(story, EDITION, tmp_path / "bundle.tar")
    assert (tmp_path / "bundle.tar").read_bytes() == b"mine"


def test_evidence_that_does_not_hold_is_not_exported(story: Scenario, tmp_path: Path) -> None:
    copy = Scenario(Path(shutil.copytree(story.root, tmp_path / "copy")), runs=story.runs)
    path = copy.root / "runs" / copy.runs["first"] / "predictions.jsonl"
    path.write_bytes(flipped(path.read_bytes(), 9))
    (tmp_path / "out").mkdir()
    with pytest.raises(ClaimDoesNotHold, match="23 kept files"):
        export(copy, EDITION, tmp_path / "out" / "bundle.tar")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_listed_file_that_the_log_does_not_know_is_not_exported(
    story: Scenario, tmp_path: Path
) -> None:
    copy = Scenario(Path(shutil.copytree(story.root, tmp_path / "copy")), runs=story.runs)
    sums = copy.root / "runs" / copy.runs["first"] / "SHA256SUMS"
    sums.write_bytes(sums.read_bytes() + b"0" * 64 + b"  zz-labels.jsonl\n")
    with pytest.raises(ClaimDoesNotHold, match="does not know it as a public file"):
        export(copy, EDITION, tmp_path / "bundle.tar")


def test_the_recipe_holds_without_piste(revealed: Path, tmp_path: Path) -> None:
    done = _check(_unpacked(revealed, tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Everything that these tools can check holds." in done.stdout
    assert done.stdout.count(" 20  holds") == 4
    assert " 16  holds" in done.stdout


def _dropped_entry(files: Files) -> Files:
    lines = files[LOG_ENTRIES].splitlines(keepends=True)
    return files | {LOG_ENTRIES: b"".join(lines[:-1])}


@pytest.mark.parametrize(
    ("number", "change"),
    [
        ("2", lambda f: f | {"CHECK.md": b"x"}),
        ("2", lambda f: {n: d for n, d in f.items() if n != "CHECK.md"} | {"zz": b"x"}),
        ("9", lambda f: resummed(_dropped_entry(f))),
        (
            "5",
            lambda f: resummed(
                f | {LOG_ENTRIES: f[LOG_ENTRIES].replace(b'"sig":"M', b'"sig":"N', 1)}
            ),
        ),
        (
            "12",
            lambda f: resummed(
                f
                | {
                    f"editions/{EDITION}/edition.yaml": f[f"editions/{EDITION}/edition.yaml"]
                    + b"# more\n"
                }
            ),
        ),
    ],
)
def test_the_recipe_finds_a_change_without_piste(
    number: str, change: Callable[[Files], Files], short: Path, tmp_path: Path
) -> None:
    (tmp_path / "unpacked").mkdir()
    path = pack(change(unpack(short)), tmp_path / "changed.tar")
    done = _check(_unpacked(path, tmp_path / "unpacked"))
    assert done.returncode == 1
    assert f"{number}  FALSE" in done.stdout


def test_a_runs_folder_is_checked_by_sha256sum_and_openssl(
    story: Scenario, bundle: Path, tmp_path: Path
) -> None:
    folder = _unpacked(bundle, tmp_path) / "runs" / story.runs["first"]
    subprocess.run(["sha256sum", "-c", "--strict", "SHA256SUMS"], cwd=folder, check=True)
    sig = tmp_path / "sig"
    sig.write_bytes(base64.b64decode((folder / "SHA256SUMS.sig").read_bytes()))
    done = subprocess.run(
        ["openssl", "dgst", "-sha256", "-verify", "run.pub", "-signature", sig, "SHA256SUMS"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "Verified OK\n"


def test_every_envelope_is_verified_by_securesystemslib(story: Scenario, bundle: Path) -> None:
    keys = {}
    for published in story.open().ledger.keyset().published():
        algorithm = "ed25519" if published.algorithm == "ed25519" else "ecdsa-sha2-nistp256"
        kind = "ed25519" if published.algorithm == "ed25519" else "ecdsa"
        if kind == "ecdsa":
            keys[published.key_id] = SSlibKey(
                published.key_id, kind, algorithm, {"public": published.pem}
            )
    for entry in entries_of(unpack(bundle)):
        envelope = ForeignEnvelope.from_dict(json.loads(entry))
        [key_id] = envelope.signatures
        assert envelope.verify([keys[key_id]], threshold=1)


def test_the_checkpoints_root_is_that_of_pymerkle(bundle: Path) -> None:
    files = unpack(bundle)
    tree = InmemoryTree(algorithm="sha256")
    for entry in entries_of(files):
        tree.append_entry(entry)
    signed = parse_checkpoint(files[LOG_CHECKPOINT], source="checkpoint").checkpoint
    assert signed.root == tree.get_root()
    assert signed.size == tree.get_size()


def test_tiles_are_static_files_of_the_log(story: Scenario, tmp_path: Path) -> None:
    files = unpack(export(story, EDITION, tmp_path / "bundle.tar", tiles=True))
    size = len(entries_of(files))
    entries = EntryBundle(index=0, width=size)
    leaves = parse_entry_bundle(files[f"log/{entries.path}"], bundle=entries)
    assert list(leaves) == entries_of(files)
    tile = Tile(level=0, index=0, width=size)
    assert len(parse_tile(files[f"log/{tile.path}"], tile=tile)) == size
    compared = {one.check: one.compared for one in verify(tmp_path / "bundle.tar").results}
    assert compared[Check.TILES] == 2


@pytest.mark.parametrize("change", ["byte", "missing", "extra"])
def test_tiles_that_are_not_the_logs_are_found(
    change: str, story: Scenario, tmp_path: Path
) -> None:
    files = unpack(export(story, EDITION, tmp_path / "bundle.tar", tiles=True))
    name = next(name for name in files if name.startswith("log/tile/0/"))
    data = files.pop(name)
    if change != "missing":
        files[name] = flipped(data, 5) if change == "byte" else data
    if change == "extra":
        files["log/tile/5/000"] = data
    assert failed(verify(pack(resummed(files), tmp_path / "x.tar"))) == {Check.TILES}


def test_a_bag_is_checked_by_its_manifest_and_holds(story: Scenario, tmp_path: Path) -> None:
    (tmp_path / "unpacked").mkdir()
    path = export(story, EDITION, tmp_path / "bag.tar", bag=True)
    bag = _unpacked(path, tmp_path / "unpacked")
    done = subprocess.run(
        ["sha256sum", "-c", "--strict", "--quiet", "manifest-sha256.txt"], cwd=bag, check=False
    )
    assert done.returncode == 0
    payload = [file for file in (bag / "data").rglob("*") if file.is_file()]
    info = (bag / "bag-info.txt").read_text()
    assert info == f"Payload-Oxum: {sum(f.stat().st_size for f in payload)}.{len(payload)}\n"
    assert failed(verify(path)) == set()
    assert failed(verify(bag)) == set()


def test_a_bags_own_files_are_checked(story: Scenario, tmp_path: Path) -> None:
    files = unpack(export(story, EDITION, tmp_path / "bag.tar", bag=True))
    for name in ("bagit.txt", "bag-info.txt", "manifest-sha256.txt", "data/CHECK.md"):
        changed = {**files, name: files[name] + b"x"}
        assert Check.BUNDLE in failed(verify(pack(changed, tmp_path / "changed.tar"))), name


def test_a_common_tar_unpacks_into_one_folder_of_plain_files(bundle: Path) -> None:
    with tarfile.open(bundle) as tar:
        members = tar.getmembers()
    assert all(member.isreg() and member.mode == 0o644 for member in members)
    assert {member.name.split("/")[0] for member in members} == {f"piste-{EDITION}"}
    assert {(member.mtime, member.uid, member.uname) for member in members} == {(0, 0, "")}
