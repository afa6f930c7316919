"""The trusted image in which a GPU is looked for: the C library and nothing else.

The GPU's toolkit puts `nvidia-smi` and the driver's libraries into the container; they need a
loader, the C library and its companions, which come from this machine.
"""

from __future__ import annotations

from pathlib import Path

from manifests.errors import PlatformFault
from orchestrator.images.python.python_installation import architecture, interpreter
from orchestrator.images.python.shared_libraries import find_shared_libraries
from orchestrator.images.rules.image_archive import (
    EntryKind,
    ImageSettings,
    Layer,
    TarEntry,
    config_document,
    layer_from_entries,
)

_COMPANIONS = ("libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libgcc_s.so.1")
"""What driver tools ask for beside the C library (ldd of nvidia-smi and libnvidia-ml)."""
_MOUNT_POINTS = ("tmp", "usr/bin", "etc", "run", "var", "dev", "proc", "sys")


def gpu_probe_image() -> tuple[bytes, Layer]:
    """Return config and layer of the probe image; the command is given when it is run.

    Raises:
        PlatformFault: when this machine's C library cannot be read.

    """
    libraries = find_shared_libraries([interpreter()])
    libc = libraries.by_name.get("libc.so.6")
    if libc is None:
        raise PlatformFault("no glibc on this machine; the GPU probe needs one")
    try:
        layer = layer_from_entries(_entries(libraries.loader, libc))
    except OSError as error:
        raise PlatformFault(f"{libc.parent}: the C library cannot be read: {error}") from error
    settings = ImageSettings(
        environment={"PATH": "/usr/bin:/bin"}, platform=f"linux/{architecture()}"
    )
    return config_document(settings, [layer.diff_id]), layer


def _entries(loader: Path, libc: Path) -> list[TarEntry]:
    entries = [TarEntry(path=name, kind=EntryKind.DIRECTORY, mode=0o755) for name in _MOUNT_POINTS]
    entries.append(TarEntry(path=str(loader), data=loader.read_bytes(), mode=0o755))
    for name in (libc.name, *_COMPANIONS):
        library = libc.parent / name
        if library.exists():
            entries.append(TarEntry(path=str(library), data=library.read_bytes(), mode=0o755))
    return entries
