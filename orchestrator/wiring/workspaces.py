"""Put adapters and use cases together: the only place that knows both."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
from contextlib import closing
from pathlib import Path

from manifests.digests import oci_digest
from manifests.statements import WorkspaceCreated
from orchestrator.editions.epee.epee_folder import EditionFile
from orchestrator.editions.ports import EditionSource
from orchestrator.editions.rules.seal_documents import SealDocument
from orchestrator.editions.rules.sealed_profile import seal_profile
from orchestrator.editions.seal_edition import SealingTools, seal_edition
from orchestrator.engine.docker.docker_engine import DockerEngine
from orchestrator.engine.ports import ContainerEngine
from orchestrator.engine.rules.platforms import engine_platform
from orchestrator.host.doctor import DoctorReport, Examination, examine_host
from orchestrator.host.linux.linux_host import LinuxHost
from orchestrator.images.files.archive_file import ArchiveFile
from orchestrator.images.http.registry import HttpRegistry
from orchestrator.images.resolve_image import ImageSources
from orchestrator.images.rules.image_archive import docker_archive_chunks
from orchestrator.keys.age.age_files import (
    AgeKeyring,
    AgeSealer,
    generate_identity,
    protect_identity,
)
from orchestrator.keys.age.sealing_processes import SealingProcesses
from orchestrator.keys.pem.signing_keys import create_signing_keys
from orchestrator.keys.rules.recipients import SealRecipients
from orchestrator.keys.sealing_port import Purpose
from orchestrator.keys.signing_port import SigningKeys
from orchestrator.ledger.sql.sql_store import create_sql_ledger, open_sql_ledger
from orchestrator.runs.run_host import RunHost
from orchestrator.sandbox.host_gpus import HostGpus
from orchestrator.sandbox.nvidia.nvidia_smi import list_gpu_uuids
from orchestrator.sandbox.nvidia.probe_image import gpu_probe_image
from orchestrator.sandbox.self_test import probe_sandbox, require_sandbox
from orchestrator.support.reporter import Reporter, SilentReporter
from orchestrator.support.system_clock import SystemClock
from orchestrator.wiring.keys import KEYS_FOLDER, LEDGER_FILE, open_keys
from orchestrator.wiring.pick_up import pick_up
from orchestrator.workspace.files.new_workspace import stage_workspace
from orchestrator.workspace.files.workspace_files import open_workspace as open_workspace_files
from orchestrator.workspace.initialise import Initialised, WorkspaceMakers, initialise
from orchestrator.workspace.ports import NotAWorkspace
from orchestrator.workspace.workspace import Workspace
from sandbox_profiles.profile import SandboxProfile, ShippedProfile, load_profile, parse_profile


def open_workspace(root: Path, reporter: Reporter | None = None) -> Workspace:
    """Open the workspace in `root` with the keys of this host; pick up what was interrupted."""
    workspace = _workspace(root)
    pick_up(workspace, docker_engine, reporter or SilentReporter())
    return workspace


def _workspace(root: Path) -> Workspace:
    store, keys = open_workspace_files(root), open_keys(root)
    return Workspace(
        store=store,
        ledger=open_sql_ledger(root / LEDGER_FILE, keys=keys.signing),
        keyring=AgeKeyring(root / KEYS_FOLDER, ask=keys.passphrases.attempts),
        sealer=AgeSealer(),
        signing=keys.signing,
        clock=SystemClock(),
    )


def create_workspace(
    root: Path, *, origin: str | None, passphrase: str | None = None
) -> Initialised:
    """Make a workspace: keys, ledger, folders. A passphrase protects every private key."""
    secret = passphrase
    origin = origin or f"piste.local/{secrets.token_hex(6)}"

    def create_ledger(folder: Path, created: WorkspaceCreated, keys: SigningKeys) -> None:
        create_sql_ledger(folder / LEDGER_FILE, created, keys=keys)

    def make_signing_keys(folder: Path) -> SigningKeys:
        return create_signing_keys(folder, passphrase=None if secret is None else secret.encode())

    def make_identity() -> tuple[bytes, str]:
        identity, recipient = generate_identity()
        return (identity if secret is None else protect_identity(identity, secret)), recipient

    return initialise(
        root,
        origin=origin,
        make=WorkspaceMakers(
            stage=stage_workspace,
            create_signing_keys=make_signing_keys,
            create_ledger=create_ledger,
            generate_identity=make_identity,
            clock=SystemClock(),
        ),
    )


def docker_engine() -> DockerEngine:
    """Return the engine that the environment names; nothing is asked of it yet."""
    return DockerEngine(os.environ)


def free_bytes(folder: str) -> int | None:
    """Return the free bytes under an engine's folder, or None where it cannot be seen from here."""
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


def image_sources(engine: ContainerEngine) -> ImageSources:
    """Return where images come from: this engine, registries as it reaches them, archives."""
    registries = engine.describe().raw.get("RegistryConfig") or {}
    configured = registries.get("IndexConfigs") or {}
    insecure = [name for name, facts in configured.items() if not facts.get("Secure", True)]
    return ImageSources(
        engine=engine,
        registry=HttpRegistry(insecure_registries=insecure),
        open_archive=ArchiveFile,
    )


def run_host(engine: ContainerEngine) -> RunHost:
    """Return this machine as a host of runs."""
    return RunHost(
        name=socket.gethostname(),
        sources=image_sources(engine),
        free_bytes=free_bytes,
        gpus=_gpus(engine),
        self_test=lambda profile, run_id: self_test(engine, profile, run_id=run_id),
    )


def self_test(engine: ContainerEngine, profile: SandboxProfile, *, run_id: str) -> None:
    """Refuse a host on which the sandbox does not hold."""
    platform = engine_platform(engine.describe().architecture)
    results = probe_sandbox(engine, profile, run_id=run_id, platform=platform)
    require_sandbox(results)


def examine(folder: Path, profiles: tuple[str, ...]) -> DoctorReport:
    """Examine this host; `folder` is a workspace, or where one would be."""
    engine = docker_engine()
    try:
        store = open_workspace_files(folder)
    except NotAWorkspace:
        store = None
    examination = Examination(
        engine=engine,
        host=LinuxHost(),
        gpus=_gpus(engine),
        clock=SystemClock(),
        new_run_id=lambda: secrets.token_hex(8),
        folder=folder,
        store=store,
    )
    return examine_host(examination, tuple(load_profile(name) for name in profiles))


def _gpus(engine: ContainerEngine) -> HostGpus:
    return HostGpus(engine, list_uuids=list_gpu_uuids, load_helper=lambda: _load_gpu_helper(engine))


def _load_gpu_helper(engine: ContainerEngine) -> str:
    config, layer = gpu_probe_image()
    archive = b"".join(docker_archive_chunks(config, [layer]))
    image_id = oci_digest(config)
    if engine.inspect_image(image_id) is None:
        engine.load_archive((archive,), len(archive), SilentReporter())
    return image_id


def load_profile_file(source: EditionSource, name: str) -> bytes:
    """Return the sealed form of a shipped profile, or of one at a path beside the edition."""
    if name in set(ShippedProfile):
        return seal_profile(load_profile(name))
    return seal_profile(parse_profile(source.read(name), source.place_of(name)))


def seal(workspace: Workspace, edition_file: Path, reporter: Reporter) -> SealDocument:
    """Seal the edition that a file describes."""
    keyring = workspace.keyring
    recipients = SealRecipients(
        clips=keyring.plan(Purpose.CLIPS), labels=keyring.plan(Purpose.LABELS)
    )
    with closing(SealingProcesses()) as processes:
        tools = SealingTools(
            store=workspace.store,
            ledger=workspace.ledger,
            sealer=workspace.sealer,
            clip_sealer=processes,
            clock=workspace.clock,
            reporter=reporter,
            recipients=recipients,
            load_profile=load_profile_file,
        )
        return seal_edition(EditionFile(edition_file), tools)
