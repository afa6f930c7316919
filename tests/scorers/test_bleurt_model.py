"""BLEURT from a local folder, on tiny random checkpoints made here: no weights are shipped."""

from __future__ import annotations

import hashlib
import io
import json
import string
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from manifests.errors import MalformedDocument, RefusedByPolicy
from scorers.translation import Slice, TranslationLabel, TranslationParameters, score
from scorers.translation import bleurt_model as module
from scorers.translation.bleurt_model import checkpoint_digest, load_checkpoint, segment_scores

EXTRA = "needs the extra 'bleurt': torch, transformers and sentencepiece"
PAIRS = [("how old are you", "how old is he"), ("it rains", "it rains"), ("a", "zebra " * 90)]
SHAPE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "pad_token_id": 0,
}


def needed(name: str) -> Any:
    return pytest.importorskip(name, reason=EXTRA)


def word_pieces() -> list[str]:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = list(string.ascii_lowercase)
    return special + letters + ["##" + letter for letter in letters]


@pytest.fixture
def bert_folder(tmp_path: Path) -> Path:
    """Write a checkpoint as the conversions of the first BLEURT have it: names of their own."""
    torch, transformers = needed("torch"), needed("transformers")
    needed("sentencepiece")
    folder = tmp_path / "tiny-bert"
    folder.mkdir()
    pieces = word_pieces()
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n")
    config = {**SHAPE, "vocab_size": len(pieces), "model_type": "bleurt", "hidden_act": "gelu"}
    (folder / "config.json").write_text(json.dumps(config))
    torch.manual_seed(0)
    native = transformers.BertConfig(**SHAPE, vocab_size=len(pieces), num_labels=1)
    weights = transformers.BertForSequenceClassification(native).state_dict()
    theirs = {name.replace("bert.", "bleurt.", 1): tensor for name, tensor in weights.items()}
    theirs["bleurt.embeddings.position_ids"] = torch.arange(64).expand((1, -1))
    torch.save(theirs, folder / "pytorch_model.bin")
    return folder


@pytest.fixture
def rembert_folder(tmp_path: Path) -> Path:
    """Write a checkpoint as the conversions of BLEURT-20 have it: projected embeddings."""
    torch, transformers = needed("torch"), needed("transformers")
    sentencepiece = needed("sentencepiece")
    folder = tmp_path / "tiny-rembert"
    folder.mkdir()
    trained = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["how old are you", "it rains today", "where is the station"] * 20),
        model_writer=trained,
        vocab_size=40,
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        control_symbols=["[CLS]", "[SEP]"],
        hard_vocab_limit=False,
        minloglevel=2,
    )
    (folder / "spm.model").write_bytes(trained.getvalue())
    config = {**SHAPE, "vocab_size": 40, "embedding_size": 16, "model_type": "bleurt"}
    (folder / "config.json").write_text(json.dumps(config))
    torch.manual_seed(0)
    native = transformers.RemBertConfig(
        **SHAPE, vocab_size=40, input_embedding_size=16, output_embedding_size=16, num_labels=1
    )
    weights = transformers.RemBertForSequenceClassification(native).state_dict()
    theirs = {
        name.replace("rembert.", "bleurt.", 1).replace(
            "encoder.embedding_hidden_mapping_in", "encoder.embedding_projection"
        ): tensor.contiguous()
        for name, tensor in weights.items()
    }
    import_module("safetensors.torch").save_file(theirs, folder / "model.safetensors")
    return folder


def test_a_converted_bert_checkpoint_scores_as_transformers_own_class_does(
    bert_folder: Path,
) -> None:
    torch, transformers = needed("torch"), needed("transformers")
    torch.manual_seed(0)
    native = transformers.BertForSequenceClassification(
        transformers.BertConfig(
            **SHAPE, vocab_size=len(word_pieces()), num_labels=1, hidden_act="gelu_new"
        )
    ).eval()
    pieces = word_pieces()
    ids = [2, pieces.index("i"), pieces.index("##t"), 3, pieces.index("a"), 3]
    with torch.inference_mode():
        logits = native(
            input_ids=torch.tensor([ids]), token_type_ids=torch.tensor([[0, 0, 0, 0, 1, 1]])
        ).logits
    (ours,) = load_checkpoint(bert_folder).score([("it", "a")])
    assert ours == pytest.approx(float(logits[0, 0]), abs=1e-6)


def test_scores_do_not_depend_on_the_batch_or_on_the_order(rembert_folder: Path) -> None:
    checkpoint = load_checkpoint(rembert_folder)
    together = checkpoint.score(PAIRS)
    assert together == pytest.approx(checkpoint.score(PAIRS, batch_size=1), abs=2e-6)
    assert checkpoint.score(PAIRS[::-1]) == together[::-1]
    assert len(set(together)) == 3


def test_the_network_tells_reference_from_candidate(rembert_folder: Path) -> None:
    checkpoint = load_checkpoint(rembert_folder)
    one, other = checkpoint.score(
        [("how old are you", "it rains"), ("it rains", "how old are you")]
    )
    assert one != other


def test_a_checkpoint_fills_the_whole_card_and_leaves_its_digest_there(bert_folder: Path) -> None:
    labels = [
        TranslationLabel("a", Slice.STUDIO, "how old are you"),
        TranslationLabel("b", Slice.STUDIO, "where is the station"),
        TranslationLabel("c", Slice.CANARY, "it rains"),
    ]
    answers = {"a": "how old are you", "b": "", "c": "it rains"}
    parameters = TranslationParameters()
    scores = segment_scores(load_checkpoint(bert_folder), labels, answers, parameters)
    card = score(labels, answers, parameters, bleurt=scores)
    digest = checkpoint_digest(bert_folder)
    assert set(scores.scores) == {"a", "b", "c"}
    assert set(scores.deranged or {}) == {"a", "b"}
    assert card.public["bleurt_checkpoint"] == {"name": "tiny-bert", "sha256": digest}
    assert f"bleurt:clip01.empty0.{digest}" in card.scorer_string
    assert isinstance(card.public["s_translation"], float)


def test_weights_that_do_not_fit_the_configuration_are_refused(bert_folder: Path) -> None:
    config = json.loads((bert_folder / "config.json").read_text())
    (bert_folder / "config.json").write_text(json.dumps({**config, "hidden_size": 64}))
    with pytest.raises(MalformedDocument, match=r"weights do not fit config\.json"):
        load_checkpoint(bert_folder)


def test_a_file_that_holds_no_weights_is_refused(bert_folder: Path) -> None:
    (bert_folder / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(MalformedDocument, match="holds no weights"):
        load_checkpoint(bert_folder)


def test_a_folder_without_vocabulary_is_refused(bert_folder: Path) -> None:
    (bert_folder / "vocab.txt").unlink()
    with pytest.raises(MalformedDocument, match="no vocabulary"):
        load_checkpoint(bert_folder)


def test_a_folder_that_is_no_checkpoint_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "NEEDED_PACKAGES", ())
    with pytest.raises(MalformedDocument, match="has no configuration"):
        load_checkpoint(tmp_path)


def test_without_the_optional_packages_the_refusal_names_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "NEEDED_PACKAGES", ("a_package_that_nobody_has",))
    with pytest.raises(RefusedByPolicy, match="install the extra 'bleurt'"):
        load_checkpoint(tmp_path)


def test_the_folder_digest_is_that_of_what_sha256sum_lists(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "b.txt").write_bytes(b"b")
    (tmp_path / "sub" / "a.bin").write_bytes(b"a")
    listed = subprocess.run(
        ["sha256sum", "b.txt", "sub/a.bin"], cwd=tmp_path, capture_output=True, check=True
    )
    assert checkpoint_digest(tmp_path) == hashlib.sha256(listed.stdout).hexdigest()


def test_the_scorer_itself_never_imports_torch() -> None:
    code = "import sys, scorers.translation; print({'torch', 'transformers'} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert shown.stdout.strip() == "set()"
