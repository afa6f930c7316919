"""What the simulated engine reads from archives and shows in inspections."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.images.rules.image_config import neutralise
from orchestrator.sandbox.rules.effective import expected_environment


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedImage:
    """An image as the engine keeps it."""

    image_id: str
    inspection: Mapping[str, Any]
    archive: bytes


def unpack(archive: bytes) -> dict[str, bytes]:
    """Return the files of a tar by name, in memory."""
    found: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            file = tar.extractfile(member) if member.isreg() else None
            if file is not None:
                found[member.name.removeprefix("./")] = file.read()
    return found


def paths(archive: bytes) -> tuple[str, ...]:
    """Return where the members of a tar lie once it is unpacked at a root."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return tuple("/" + name.removeprefix("./") for name in tar.getnames())


def pack(root: str, files: Mapping[str, bytes]) -> bytes:
    """Return a tar of a folder, as an engine streams it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        folder = tarfile.TarInfo(f"{root}/")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
        for name, data in sorted(files.items()):
            member = tarfile.TarInfo(f"{root}/{name}")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def read_image(archive: bytes) -> SimulatedImage:
    """Read a docker-archive of one image."""
    files = unpack(archive)
    manifest = json.loads(files["manifest.json"])
    config_bytes = files[manifest[0]["Config"]]
    config = json.loads(config_bytes)
    image_id = f"sha256:{hashlib.sha256(config_bytes).hexdigest()}"
    return SimulatedImage(
        image_id=image_id,
        inspection={
            "Id": image_id,
            "Architecture": config["architecture"],
            "Os": config["os"],
            "Size": sum(len(files[name]) for name in manifest[0]["Layers"]),
            "Config": config.get("config", {}),
            "RootFS": {"Type": "layers", "Layers": config["rootfs"]["diff_ids"]},
            "RepoTags": manifest[0].get("RepoTags") or [],
            "RepoDigests": [],
        },
        archive=archive,
    )


def inspection(options: Mapping[str, Any], image: SimulatedImage) -> dict[str, Any]:
    """Return a container's inspection without its state: the options as an engine shows them."""
    body = copy.deepcopy(dict(options))
    host = body.pop("HostConfig")
    neutral = neutralise(image.inspection["Config"])
    config = {
        **body,
        "Env": expected_environment(body.get("Env", []), neutral.environment),
        "Entrypoint": list(neutral.entrypoint) or None,
        "Cmd": list(neutral.command) or None,
    }
    mounts = [
        {
            "Type": mount["Type"],
            "Name": mount["Source"],
            "Destination": mount["Target"],
            "RW": not mount["ReadOnly"],
        }
        for mount in host.get("Mounts", [])
    ]
    return {"Image": body["Image"], "HostConfig": host, "Config": config, "Mounts": mounts}
