"""List the host's GPUs with the vendor's own tool, where there is one."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import Final

_LIST: Final = ("--query-gpu=uuid", "--format=csv,noheader")
_UUID: Final = re.compile(r"(GPU|MIG)-[0-9A-Za-z/-]{1,100}")
_TIMEOUT_S: Final = 20


def list_gpu_uuids() -> tuple[str, ...]:
    """Return the UUIDs that `nvidia-smi` lists; empty without the tool, or where it fails."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ()
    try:
        done = subprocess.run(
            (tool, *_LIST), capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    lines = done.stdout.split() if done.returncode == 0 else []
    return tuple(line for line in lines if _UUID.fullmatch(line))
