"""A GPU that a program expects and a run does not have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from orchestrator.entrants.rules.findings import Cause, Finding
from orchestrator.entrants.rules.observations import Observation

_EXPECTED: Final = re.compile(
    r"no CUDA-capable device|CUDA driver|NVIDIA driver|libcuda\.so|CUDA_ERROR_NO_DEVICE"
    r"|No CUDA GPUs are available|Torch not compiled with CUDA|CUDA initialization"
    r"|nvidia-smi: (?:command )?not found|torch\.cuda\.is_available\(\) is False"
    r"|CUDA is not available|requires? a GPU|no GPU",
    re.IGNORECASE,
)


def gpu(seen: Observation) -> Iterator[Finding]:
    """Find a program that asks for a GPU in a run without one."""
    said = seen.log.find(_EXPECTED)
    if said is None or seen.has_gpu or seen.completed:
        return
    yield Finding(
        cause=Cause.GPU_ABSENT,
        certainty=said.certainty,
        fact="it expects a GPU, and this run has none",
        remedy=(
            "fall back to the CPU (torch.device('cuda' if torch.cuda.is_available() else 'cpu'), "
            "torch.load(…, map_location=device)); with a GPU here, use --gpu required"
        ),
        details=(said.line,),
    )
