"""How BLEURT reads a pair of sentences: [CLS] reference [SEP] candidate [SEP].

The reference comes first, with token type 0, the candidate second, with 1; a pair that is too
long loses tokens from the end of the longer side, the candidate's where both are as long
(Sellam et al. 2020; google-research/bleurt, ``encoding.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

SENTENCE_PIECE_FILES = ("spm.model", "sent_piece.model", "sentencepiece.model")
WORD_PIECE_FILE = "vocab.txt"


@dataclass(frozen=True, slots=True)
class EncodedPair:
    """Token ids and token types of one pair, without padding."""

    token_ids: tuple[int, ...]
    token_types: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PairEncoder:
    """Turn a reference and a candidate into token ids, at most ``max_tokens`` of them."""

    encode: Callable[[str], list[int]]
    cls_id: int
    sep_id: int
    max_tokens: int

    def pair(self, reference: str, candidate: str) -> EncodedPair:
        """Encode one pair."""
        first, second = fit_pair(
            self.encode(reference), self.encode(candidate), self.max_tokens - 3
        )
        ids = (self.cls_id, *first, self.sep_id, *second, self.sep_id)
        return EncodedPair(ids, (0,) * (len(first) + 2) + (1,) * (len(second) + 1))


def fit_pair(
    reference: Sequence[int], candidate: Sequence[int], limit: int
) -> tuple[Sequence[int], Sequence[int]]:
    """Cut the longer side, the candidate's where equal, until both together fit the limit."""
    first, second = len(reference), len(candidate)
    while first + second > limit:
        if first > second:
            first -= 1
        else:
            second -= 1
    return reference[:first], candidate[:second]


def sentence_piece_encoder(model: Path, max_tokens: int) -> PairEncoder:
    """Read a SentencePiece model (BLEURT-20 and its distilled forms)."""
    sentencepiece: Any = import_module("sentencepiece")
    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    return PairEncoder(
        processor.encode_as_ids,
        processor.piece_to_id("[CLS]"),
        processor.piece_to_id("[SEP]"),
        max_tokens,
    )


def word_piece_encoder(vocabulary: Path, max_tokens: int, *, lower_case: bool) -> PairEncoder:
    """Read a WordPiece vocabulary (the checkpoints before BLEURT-20)."""
    tokenizers: Any = import_module("tokenizers")
    pieces = tokenizers.models.WordPiece.read_file(str(vocabulary))
    tokenizer = tokenizers.BertWordPieceTokenizer(pieces, lowercase=lower_case)

    def encode(text: str) -> list[int]:
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    return PairEncoder(
        encode, tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]"), max_tokens
    )
