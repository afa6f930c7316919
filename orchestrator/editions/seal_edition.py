"""`piste seal`: clips and labels become ciphertext and commitments, all or nothing.

The ciphertext is staged and on the disk before `edition-sealed` is appended; only then is the
folder renamed into place. So the ledger alone decides what a killed process leaves behind: with
the statement the staged folder is the edition, without it the folder is thrown away.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Final

from manifests.digests import sha256_hex
from manifests.editions import Edition
from manifests.errors import RefusedByPolicy
from manifests.labels import (
    LabelledClip,
    check_labels_fit,
)
from manifests.statements import EditionSealed, LabelsCommitment, PublicKey, Statement
from manifests.sums import render_sums
from orchestrator.editions.clip_files import read_clip
from orchestrator.editions.edition_draft import EditionDraft, LoadProfile, read_draft
from orchestrator.editions.ports import ClipFolder, EditionSource
from orchestrator.editions.rules.clip_archives import pack_clip
from orchestrator.editions.rules.opaque_names import render_names
from orchestrator.editions.rules.seal_documents import SealDocument, encode_seal
from orchestrator.editions.sealed_labels import (
    NAMES_FILE,
    SALT_BYTES,
    labels_file,
    seal_labels,
)
from orchestrator.editions.settle_editions import (
    CLIP_SUMS_FILE,
    EDITION_FILE,
    PROFILE_FILE,
    SEAL_FILE,
    SEALED_SUMS_FILE,
    VOCABULARY_FILE,
    settle,
    settle_abandoned,
)
from orchestrator.keys.rules.recipients import SealRecipients
from orchestrator.keys.sealing_port import BulkSealer, Sealer
from orchestrator.ledger.ports import Entry, Ledger
from orchestrator.ledger.rules.keyset import ROLES
from orchestrator.support.clock import Clock
from orchestrator.support.reporter import Reporter, Step
from orchestrator.workspace.ports import StagedEdition, WorkspaceStore

WORKERS: Final = 2
"""Threads that seal clips; more of them wait for one another more than they work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SealingTools:
    """What sealing needs from the world."""

    store: WorkspaceStore
    ledger: Ledger
    sealer: Sealer
    clip_sealer: BulkSealer
    clock: Clock
    reporter: Reporter
    recipients: SealRecipients
    load_profile: LoadProfile
    workers: int = WORKERS


@dataclass(frozen=True, slots=True)
class _Work:
    staged: StagedEdition
    folder: ClipFolder
    draft: EditionDraft
    tools: SealingTools


@dataclass(frozen=True, slots=True)
class _SealedClip:
    plain: tuple[tuple[str, str], ...]
    cipher: tuple[str, str]
    original_id: str
    labelled: LabelledClip


def seal_edition(source: EditionSource, tools: SealingTools) -> SealDocument:
    """Seal the edition that `source` describes and return its seal.

    Raises:
        MalformedDocument: a file of the edition does not follow its format.
        RefusedByPolicy: an edition of this name is sealed, or is being sealed.
        PlatformFault: the disk refuses; nothing is left behind.

    """
    settle_abandoned(tools.store, tools.ledger)
    draft = read_draft(source, tools.load_profile)
    name = draft.edition.edition
    with tools.store.stage_edition(name) as staged:
        refuse_sealed(name, tuple(tools.ledger.entries(edition=name, kind="edition-sealed")))
        _refuse_foreign(name, tools.store)
        try:
            staged.discard()
            seal = _fill(staged, draft, tools)
            _append(seal, draft, tools)
        finally:
            settle(staged, tools.ledger)
    return seal


def refuse_sealed(name: str, history: Sequence[Entry]) -> None:
    """Refuse to seal an edition twice."""
    if any(entry.statement.kind == "edition-sealed" for entry in history):
        raise RefusedByPolicy(
            f"edition {name}: sealed already, and a seal never changes; give the new edition "
            "another name, or add labels with: piste labels add"
        )


def _refuse_foreign(name: str, store: WorkspaceStore) -> None:
    if store.exists(f"editions/{name}"):
        raise RefusedByPolicy(
            f"{store.root}/editions/{name}: is there, but the ledger knows of no such edition; "
            "move the folder away"
        )


def _fill(staged: StagedEdition, draft: EditionDraft, tools: SealingTools) -> SealDocument:
    tools.reporter.step(Step.SEAL)
    staged.add(EDITION_FILE, draft.document)
    staged.add(PROFILE_FILE, draft.profile)
    if draft.vocabulary is not None:
        staged.add(VOCABULARY_FILE, draft.vocabulary)
    clips = _seal_clips(staged, draft, tools)
    commitment = _seal_labels(staged, draft, clips, tools)
    clip_sums = render_sums(
        dict(pair for clip in clips for pair in clip.plain), salt=secrets.token_hex(SALT_BYTES)
    )
    staged.add(CLIP_SUMS_FILE, tools.sealer.seal(clip_sums, tools.recipients.clips))
    sealed_sums = render_sums(dict(clip.cipher for clip in clips))
    staged.add(SEALED_SUMS_FILE, sealed_sums)
    seal = SealDocument(
        edition=draft.edition.edition,
        created=tools.clock.now(),
        edition_sha256=sha256_hex(draft.document),
        clips=len(clips),
        clip_set_sha256=sha256_hex(clip_sums),
        sealed_sums_sha256=sha256_hex(sealed_sums),
        vocabulary_sha256=None if draft.vocabulary is None else sha256_hex(draft.vocabulary),
        labels=(commitment,),
        profile=draft.edition.profile,
        profile_sha256=sha256_hex(draft.profile),
        recipients=tools.recipients,
        keys=_current_keys(tools.ledger),
    )
    staged.add(SEAL_FILE, encode_seal(seal))
    staged.make_durable()
    return seal


def _current_keys(ledger: Ledger) -> tuple[PublicKey, ...]:
    keyset = ledger.keyset()
    return tuple(keyset.current(role) for role in ROLES)


def _seal_clips(
    staged: StagedEdition, draft: EditionDraft, tools: SealingTools
) -> tuple[_SealedClip, ...]:
    """Seal in the order of the opaque names: neither times nor inodes tell the source's order."""
    folder = draft.source.clips(draft.edition.source)
    order = sorted(draft.names, key=draft.names.__getitem__)
    clips: list[_SealedClip] = []
    pool = ThreadPoolExecutor(tools.workers)
    try:
        for clip in pool.map(partial(_seal_clip, _Work(staged, folder, draft, tools)), order):
            clips.append(clip)
            tools.reporter.progress(Step.SEAL, len(clips), len(order), "clips")
    finally:
        pool.shutdown(cancel_futures=True)
    return tuple(clips)


def _seal_clip(work: _Work, clip_id: str) -> _SealedClip:
    new_id, tools = work.draft.names[clip_id], work.tools
    clip = read_clip(work.folder, clip_id, new_id=new_id, track=work.draft.edition.track)
    files = (clip.keypoints, clip.annotation)
    name = f"sealed/{new_id}.age"
    write = partial(work.staged.add, name)
    sha256 = tools.clip_sealer.seal_to(write, pack_clip(files), tools.recipients.clips)
    return _SealedClip(
        plain=tuple((file.name, sha256_hex(file.data)) for file in files),
        cipher=(name, sha256),
        original_id=clip_id,
        labelled=clip.labelled(),
    )


def _seal_labels(
    staged: StagedEdition, draft: EditionDraft, clips: Sequence[_SealedClip], tools: SealingTools
) -> LabelsCommitment:
    rule = draft.edition.labels
    known = {clip.original_id: clip.labelled for clip in clips}
    check_labels_fit(draft.labels, known, source=draft.source.place_of(rule.path))
    plan = tools.recipients.labels
    sealed = seal_labels(
        draft.labels,
        names=draft.names,
        version=rule.version,
        note=rule.note,
        sealer=tools.sealer,
        plan=plan,
    )
    staged.add(labels_file(rule.version), sealed.sealed)
    staged.add(NAMES_FILE, tools.sealer.seal(render_names(draft.names), plan))
    return sealed.commitment


def _append(seal: SealDocument, draft: EditionDraft, tools: SealingTools) -> None:
    statement = _statement(seal, draft.edition, tools.clock)

    def decide(history: Sequence[Entry]) -> Statement:
        refuse_sealed(seal.edition, history)
        return statement

    tools.ledger.decide(decide, edition=seal.edition)


def _statement(seal: SealDocument, edition: Edition, clock: Clock) -> EditionSealed:
    return EditionSealed(
        at=clock.now(),
        edition=edition.edition,
        title=edition.title,
        track=edition.track,
        round=edition.round,
        edition_sha256=seal.edition_sha256,
        seal_sha256=sha256_hex(encode_seal(seal)),
        clip_set_sha256=seal.clip_set_sha256,
        sealed_sums_sha256=seal.sealed_sums_sha256,
        clips=seal.clips,
        labels=seal.labels[0],
        profile=seal.profile,
        profile_sha256=seal.profile_sha256,
        gpu=edition.gpu,
        quota=edition.quota,
        submissions=edition.submissions,
        scorer=f"{edition.scorer.name} {edition.scorer.version}",
        opens=edition.opens,
        closes=edition.closes,
        consumer=edition.consumer,
    )
