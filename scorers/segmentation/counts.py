"""Additive counts: every figure of the exam is a function of their sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Counts:
    """Named counts of many units (clips, signers or replicates); float64 (units, width) each.

    They add over clips, so a bootstrap replicate is one row of ``weights @ counts``
    (scoring notes, 1.5).
    """

    columns: Mapping[str, NDArray[np.float64]]

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        """Return the counts of that name, shape (units, width)."""
        return self.columns[name]

    def one(self, name: str) -> NDArray[np.float64]:
        """Return a count of width 1 as shape (units,)."""
        return self.columns[name][:, 0]

    def __or__(self, other: Counts) -> Counts:
        """Join counts of the same units under their different names."""
        return Counts({**self.columns, **other.columns})

    def __add__(self, other: Counts) -> Counts:
        """Add unit by unit, as for two halves of a corpus."""
        return Counts({name: block + other.columns[name] for name, block in self.columns.items()})

    def weighted(self, weights: NDArray[np.int64]) -> Counts:
        """Return ``weights @ counts`` for weights of shape (rows, units)."""
        widths = [block.shape[1] for block in self.columns.values()]
        sums = weights.astype(np.float64) @ np.concatenate(list(self.columns.values()), axis=1)
        blocks = np.split(sums, np.cumsum(widths)[:-1], axis=1)
        return Counts(dict(zip(self.columns, blocks, strict=True)))

    def total(self) -> Counts:
        """Return the sums over all units, as one unit."""
        return Counts({name: b.sum(axis=0, keepdims=True) for name, b in self.columns.items()})

    def grouped(self, group_of: NDArray[np.int64], groups: int) -> Counts:
        """Sum the units of each group; ``group_of`` (units,) names the group of each unit."""
        membership = np.zeros((groups, group_of.size), np.int64)
        membership[group_of, np.arange(group_of.size)] = 1
        return self.weighted(membership)


def counts_of(**columns: NDArray[np.float64]) -> Counts:
    """Name counts of shape (units,) or (units, width)."""
    return Counts(
        {
            name: np.asarray(block, np.float64).reshape(block.shape[0], -1)
            for name, block in columns.items()
        }
    )
