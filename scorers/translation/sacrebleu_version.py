"""The version of sacreBLEU that the signatures name."""

from __future__ import annotations


def sacrebleu_version() -> str:
    """Return it."""
    from sacrebleu import __version__  # noqa: PLC0415 - 0.05 s, for other tracks in vain

    return str(__version__)
