"""BLEURT from a local folder, offline: the one place of the scorers that reads files.

The folder is a converted checkpoint: ``config.json``, ``model.safetensors`` or
``pytorch_model.bin``, and ``spm.model`` or ``vocab.txt``. The network is transformers' own BERT
or RemBERT class, built from the configuration and filled with the folder's weights: nothing is
looked up by name, so nothing can be downloaded. torch, transformers and sentencepiece are an
optional extra and are imported only here, when a checkpoint is loaded.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from manifests.encoding import Json, parse_json_object
from manifests.errors import MalformedDocument, RefusedByPolicy
from manifests.text import escape_untrusted
from scorers.translation.bleurt_scores import SegmentScores
from scorers.translation.bleurt_tokens import (
    SENTENCE_PIECE_FILES,
    WORD_PIECE_FILE,
    EncodedPair,
    PairEncoder,
    sentence_piece_encoder,
    word_piece_encoder,
)
from scorers.translation.derangement import derange_main_slices
from scorers.translation.exam import TranslationLabel, arrange
from scorers.translation.parameters import TranslationParameters

NEEDED_PACKAGES = ("torch", "transformers", "sentencepiece")
WEIGHT_FILES = ("model.safetensors", "pytorch_model.bin")
ROUNDED_TO = 6
"""Decimals kept of a score: padding alone moves the seventh."""

_SHARED_SETTINGS = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
    "layer_norm_eps",
    "pad_token_id",
)
_CHUNK_BYTES = 1 << 20
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BleurtCheckpoint:
    """A loaded checkpoint; ``sha256`` is the digest of its folder (``checkpoint_digest``)."""

    name: str
    sha256: str
    model: Any
    encoder: PairEncoder

    def score(self, pairs: Sequence[tuple[str, str]], batch_size: int = 16) -> list[float]:
        """Score (reference, candidate) pairs, in their order, rounded to six decimals.

        Equal pairs are computed once. Pairs are sorted by length, so that little is padding.
        """
        distinct = sorted(
            ((self.encoder.pair(*pair), pair) for pair in dict.fromkeys(pairs)),
            key=lambda item: (len(item[0].token_ids), item[1]),
        )
        known: dict[tuple[str, str], float] = {}
        for begin in range(0, len(distinct), batch_size):
            batch = distinct[begin : begin + batch_size]
            values = _run(self.model, [encoded for encoded, _ in batch])
            known.update(zip((pair for _, pair in batch), values, strict=True))
            _log.info("BLEURT: %d of %d pairs", begin + len(batch), len(distinct))
        return [known[pair] for pair in pairs]


def checkpoint_digest(folder: Path) -> str:
    """Return one SHA-256 for all files below a folder.

    It is the digest of the list that ``sha256sum`` writes (``<sha256>  <path>``) for the files'
    paths relative to the folder, in byte order.
    """
    files = sorted(
        (path.relative_to(folder).as_posix().encode(), path)
        for path in folder.rglob("*")
        if path.is_file()
    )
    listing = b"".join(f"{_file_digest(path)}  ".encode() + name + b"\n" for name, path in files)
    return hashlib.sha256(listing).hexdigest()


def load_checkpoint(folder: Path) -> BleurtCheckpoint:
    """Load a converted BLEURT checkpoint.

    Raise ``RefusedByPolicy`` where the optional packages are missing and ``MalformedDocument``
    where the folder is no converted checkpoint.
    """
    absent = [name for name in NEEDED_PACKAGES if find_spec(name) is None]
    if absent:
        raise RefusedByPolicy(
            f"BLEURT needs {', '.join(absent)}; install the extra 'bleurt', or give a file of "
            "precomputed segment scores"
        )
    config_file = _one_of(folder, ("config.json",), "configuration")
    config = parse_json_object(config_file.read_bytes(), source=str(config_file))
    weights = _renamed(_read_weights(_one_of(folder, WEIGHT_FILES, "weights")))
    return BleurtCheckpoint(
        name=escape_untrusted(folder.resolve().name, 64),
        sha256=checkpoint_digest(folder),
        model=_network(config, weights, folder),
        encoder=_encoder(folder, config),
    )


def segment_scores(
    checkpoint: BleurtCheckpoint,
    labels: Sequence[TranslationLabel],
    predictions: Mapping[str, str],
    parameters: TranslationParameters,
) -> SegmentScores:
    """Score every clip against its own reference, and every main clip against the deranged one.

    Raise ``MalformedDocument`` as ``measure`` does.
    """
    corpus = arrange(labels, predictions)
    faced = derange_main_slices(corpus, parameters.derangement_key)
    main = [row for row, is_main in enumerate(corpus.is_main()) if is_main]
    true = list(zip(corpus.references, corpus.hypotheses, strict=True))
    deranged = [(corpus.references[faced[row]], corpus.hypotheses[row]) for row in main]
    values = checkpoint.score([*true, *deranged])
    return SegmentScores(
        checkpoint.name,
        checkpoint.sha256,
        dict(zip(corpus.clip_ids, values, strict=False)),
        dict(zip((corpus.clip_ids[row] for row in main), values[len(true) :], strict=True)),
    )


def _extra(name: str) -> Any:  # noqa: ANN401 - the optional packages have no types here
    """Import an optional package at the moment it is needed: torch alone takes seconds."""
    return import_module(name)


def _file_digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _one_of(folder: Path, names: Sequence[str], what: str) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise MalformedDocument(
        f"{folder} has no {what} ({' or '.join(names)}); give the folder of a BLEURT checkpoint "
        "converted to PyTorch"
    )


def _read_weights(file: Path) -> dict[str, Any]:
    torch, safetensors = _extra("torch"), _extra("safetensors")
    try:
        if file.suffix == ".safetensors":
            weights: dict[str, Any] = _extra("safetensors.torch").load_file(file)
        else:
            weights = torch.load(file, map_location="cpu", weights_only=True)
    except (safetensors.SafetensorError, RuntimeError, ValueError, EOFError) as error:
        reason = escape_untrusted(str(error))
        raise MalformedDocument(f"{file} holds no weights: {reason}") from error
    return weights


def _renamed(weights: Mapping[str, Any]) -> dict[str, Any]:
    """Give the weights of a converted checkpoint the names of transformers' own classes."""
    projected = any("embedding_projection" in name for name in weights)
    prefix = "rembert." if projected else "bert."
    renamed = {}
    for name, tensor in weights.items():
        if name.endswith("embeddings.position_ids"):
            continue
        inner = name.replace("encoder.embedding_projection", "encoder.embedding_hidden_mapping_in")
        renamed[prefix + inner.removeprefix("bleurt.") if "bleurt." in inner else inner] = tensor
    return renamed


def _network(config: Mapping[str, Json], weights: Mapping[str, Any], folder: Path) -> Any:  # noqa: ANN401 - torch has no types here
    """Build RemBERT where the embeddings are projected, BERT otherwise, with one output.

    BLEURT was trained with the tanh form of GELU (google-research/bleurt, ``modeling.py``);
    converted configurations say ``gelu``, which would be the other one.
    """
    transformers = _extra("transformers")
    settings = {key: config[key] for key in _SHARED_SETTINGS if key in config}
    settings |= {"num_labels": 1, "hidden_act": "gelu_new"}
    try:
        if any(name.startswith("rembert.") for name in weights):
            size = config.get("embedding_size") or config.get("input_embedding_size")
            settings |= {"input_embedding_size": size, "output_embedding_size": size}
            model: Any = transformers.RemBertForSequenceClassification(
                transformers.RemBertConfig(**settings)
            )
        else:
            model = transformers.BertForSequenceClassification(transformers.BertConfig(**settings))
        model.load_state_dict(weights)
    except (RuntimeError, TypeError, ValueError) as error:
        reason = escape_untrusted(str(error), 300)
        raise MalformedDocument(f"{folder}: weights do not fit config.json: {reason}") from error
    return model.eval()


def _encoder(folder: Path, config: Mapping[str, Json]) -> PairEncoder:
    max_tokens = config.get("max_position_embeddings", 512)
    if not isinstance(max_tokens, int) or max_tokens < 4:
        raise MalformedDocument(f"{folder}: max_position_embeddings is not a number above 3")
    for name in SENTENCE_PIECE_FILES:
        if (folder / name).is_file():
            return sentence_piece_encoder(folder / name, max_tokens)
    vocabulary = _one_of(folder, (*SENTENCE_PIECE_FILES, WORD_PIECE_FILE), "vocabulary")
    return word_piece_encoder(vocabulary, max_tokens, lower_case=_lower_case(folder))


def _lower_case(folder: Path) -> bool:
    file = folder / "tokenizer_config.json"
    if not file.is_file():
        return True
    return parse_json_object(file.read_bytes(), source=str(file)).get("do_lower_case") is not False


def _run(model: Any, batch: Sequence[EncodedPair]) -> list[float]:  # noqa: ANN401 - torch has no types here
    torch = _extra("torch")
    width = max(len(pair.token_ids) for pair in batch)
    ids = torch.zeros((len(batch), width), dtype=torch.long)
    types, mask = torch.zeros_like(ids), torch.zeros_like(ids)
    for row, pair in enumerate(batch):
        here = slice(0, len(pair.token_ids))
        ids[row, here] = torch.tensor(pair.token_ids)
        types[row, here] = torch.tensor(pair.token_types)
        mask[row, here] = 1
    with torch.inference_mode():
        logits = model(input_ids=ids, token_type_ids=types, attention_mask=mask).logits
    return [round(value, ROUNDED_TO) for value in logits[:, 0].double().tolist()]
