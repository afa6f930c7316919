"""Images of a few static files whose id is known before any engine saw them."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass

from manifests.encoding import canonical_json
from orchestrator.sandbox.rules.elf import Architecture


@dataclass(frozen=True, slots=True, kw_only=True)
class TinyImage:
    """A docker-archive that names no tag, and the id that the engine will give it."""

    image_id: str
    """The config digest; engines with a containerd store use another one and say so on load."""
    platform: str
    archive: bytes


def _add(archive: tarfile.TarFile, name: str, data: bytes, mode: int) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(data), mode
    archive.addfile(member, io.BytesIO(data))


def _add_open_folder(archive: tarfile.TarFile, name: str) -> None:
    member = tarfile.TarInfo(name)
    member.type, member.mode = tarfile.DIRTYPE, 0o777
    archive.addfile(member)


def _tar(files: Mapping[str, bytes], mode: int, open_folders: tuple[str, ...] = ()) -> bytes:
    """Return a tar with owner, times and order fixed: the same files give the same bytes."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in open_folders:
            _add_open_folder(archive, name)
        for name, data in sorted(files.items()):
            _add(archive, name, data, mode)
    return buffer.getvalue()


def tiny_image(
    files: Mapping[str, bytes],
    *,
    entrypoint: tuple[str, ...],
    architecture: Architecture,
    open_folders: tuple[str, ...] = (),
) -> TinyImage:
    """Build an image of executable `files` (name without leading slash → content).

    `open_folders` are empty and everybody may write to them, where the root is not read-only.
    """
    layer = _tar(files, 0o555, open_folders)
    diff_id = hashlib.sha256(layer).hexdigest()
    config = canonical_json(
        {
            "architecture": architecture.oci,
            "config": {"Entrypoint": list(entrypoint)},
            "created": "1970-01-01T00:00:00Z",
            "history": [{"created": "1970-01-01T00:00:00Z", "created_by": "piste"}],
            "os": "linux",
            "rootfs": {"diff_ids": [f"sha256:{diff_id}"], "type": "layers"},
        }
    )
    config_digest = hashlib.sha256(config).hexdigest()
    manifest = canonical_json(
        [{"Config": f"{config_digest}.json", "Layers": [f"{diff_id}/layer.tar"], "RepoTags": None}]
    )
    members = {
        f"{config_digest}.json": config,
        f"{diff_id}/layer.tar": layer,
        "manifest.json": manifest,
    }
    return TinyImage(
        image_id=f"sha256:{config_digest}",
        platform=f"linux/{architecture.oci}",
        archive=_tar(members, 0o444),
    )
