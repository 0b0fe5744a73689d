"""Words that become tokens: which, where they are matched, how they begin, and runs with them."""

import json
import random
import re
import signal
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import AutoModel, AutoTokenizer, BertConfig, BertForMaskedLM, BertTokenizerFast

import cse
from cse_defaults.transformers import domain_words
from cse_defaults.transformers.domain_words import DomainWords, add_words, choose_words
from cse_engine.run.loop import TrainingLoop
from cse_engine.step.step import StepResult
from tests.fixtures.methods import refusal
from tests.fixtures.processes import TwoProcesses

LETTERS = "abcdefghijklmnopqrstuvwxyz,.;()'-_"
KNOWN = ["the cat sat on a mat in the category of cats , a dog ran to us"] * 30
TEXTS = [
    "Ribosome, the ribosome (ribosome) works; pre-ribosome, ribosome's RNA of Mitochondria.",
    "mitochondria and ribosome",
    "a polyribosome has ribosomes_x 2005 2005x",
] * 5 + ["once seen"]
OTHERS = [
    "polyribosomes of a category", "ribosome_x, xribosome ribosomex", "  two  spaces ", "a\tb\nc",
    "the cat's (cats); a dog-cat", "", "é ü ß 漢字 ribosome2",
]  # fmt: skip


def word_piece() -> Tokenizer:
    words = ["[UNK]", *LETTERS, *(f"##{c}" for c in LETTERS), *KNOWN[0].split(), "rib", "##some"]
    vocabulary = {word: place for place, word in enumerate(dict.fromkeys(words))}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return made


def byte_level(prefix: bool = False) -> Tokenizer:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(KNOWN, trainers.BpeTrainer(
        vocab_size=300, initial_alphabet=alphabet, show_progress=False))  # fmt: skip
    return made


def unigram(scheme: str, split: bool = False) -> Tokenizer:
    """Return one of SentencePiece's kind; XLM-R's splits at spaces first."""
    made = Tokenizer(models.Unigram())
    made.normalizer = normalizers.NFKC()
    meta = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    both = [pre_tokenizers.WhitespaceSplit(), meta]
    made.pre_tokenizer = pre_tokenizers.Sequence(both) if split else meta
    made.train_from_iterator(KNOWN, trainers.UnigramTrainer(
        vocab_size=90, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False,
        initial_alphabet=[*LETTERS, "▁"]))  # fmt: skip
    return made


def spaces_replaced() -> Tokenizer:
    """Return one as Gemma's, which makes a text one word."""
    made = unigram("never")
    made.normalizer = normalizers.Replace(" ", "▁")
    made.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    return made


FAMILIES: dict[str, Any] = {
    "WordPiece": word_piece, "byte-level": byte_level,
    "byte-level, prefix": lambda: byte_level(True), "Unigram": lambda: unigram("first"),
    "Unigram, always": lambda: unigram("always"), "XLM-R": lambda: unigram("always", split=True),
}  # fmt: skip


def added(tokenizer: Tokenizer, words: DomainWords) -> Tokenizer:
    made = Tokenizer.from_str(tokenizer.to_str())
    made.add_tokens(domain_words._added([*words.pieces]))
    return made


def by_word(tokenizer: Tokenizer, text: str) -> list[list[int]]:
    """Return the ids of each word that the tokenizer sees."""
    found: dict[int, list[int]] = {}
    row = tokenizer.encode(text)
    for word, token in zip(row.word_ids, row.ids, strict=True):
        found.setdefault(word, []).append(token)
    return list(found.values())


@pytest.mark.parametrize("family", FAMILIES)
def test_the_words_are_those_of_a_slow_loop(family: str) -> None:
    tokenizer = FAMILIES[family]()
    draws = random.Random(family)
    vocabulary = [*"the cat Ribosome mitochondria plasmid 2005 x_y B12 Nähe dog-sled".split()]
    texts = [" ".join(draws.choices(vocabulary, k=12)) for _ in range(30)] + ["seldom"] * 4
    tokenizer.enable_truncation(5)
    tokenizer.enable_padding(length=64)
    found = choose_words([texts[:7], texts[7:]], tokenizer, 4)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    total, counts = 0, Counter[str]()
    for text in texts:
        total += len(tokenizer.encode(text, add_special_tokens=False).ids)
        normal = tokenizer.normalizer.normalize_str(text) if tokenizer.normalizer else text
        for word in re.findall(r"\w+", normal):
            counts[word] += 1
    wanted = []
    for word, count in counts.items():
        groups = by_word(tokenizer, f"a {word} a")
        if count >= 5 and len(groups) == 3 and word.isalnum() and not word.isdigit():
            pieces = tuple(map(tokenizer.id_to_token, groups[1]))
            wanted += [(word, pieces, count)] * (len(pieces) > 1)
    wanted.sort(key=lambda each: (-(len(each[1]) - 1) * each[2], each[0]))
    chosen = [(word, tuple(pieces), found.counts[word]) for word, pieces in found.pieces.items()]
    assert chosen == wanted[:4] and "mitochondria" in found.pieces
    saved = sum((len(pieces) - 1) * count for _, pieces, count in wanted[:4])
    assert found.share == saved / total
    assert not choose_words([["the cat", "seldom"], []], tokenizer, 4).pieces


@pytest.mark.parametrize("family", FAMILIES)
def test_whole_words_are_matched_and_nothing_else_changes(family: str) -> None:
    tokenizer = FAMILIES[family]()
    words = choose_words([TEXTS], tokenizer, 50)
    assert {"ribosome", "mitochondria"} <= {*words.pieces} and "polyribosome" in words.pieces
    words = DomainWords({"ribosome": words.pieces["ribosome"]}, {}, 0.1, 1)
    larger = added(tokenizer, words)
    new = larger.token_to_id("ribosome")
    for text in OTHERS:
        assert larger.encode(text).ids == tokenizer.encode(text).ids, text
        assert larger.encode(text).word_ids == tokenizer.encode(text).word_ids, text
    for text in ("the ribosome sat", "a cat ribosome", "the ribosome ribosome a dog"):
        groups = by_word(tokenizer, text)
        wanted = [[new] if word == "ribosome" else own
                  for word, own in zip(text.split(), groups, strict=True)]  # fmt: skip
        assert by_word(larger, text) == wanted, text
    for text in ("ribosome", "(ribosome)", "pre-ribosome", "ribosome's", "\nribosome."):
        assert larger.encode(text).ids.count(new) == 1, text
    if family in ("WordPiece", "byte-level", "Unigram"):  # others put a space before what follows
        row = tokenizer.encode("the cat, a dog")
        behind = [i for i, (start, _) in zip(row.ids, row.offsets, strict=True) if start >= 7]
        assert larger.encode("the ribosome, a dog").ids[-len(behind) - 1 :] == [new, *behind]


def test_a_tokenizer_without_words_is_refused() -> None:
    assert refusal(choose_words, [TEXTS], spaces_replaced(), 7) == (
        "model.add_tokens: its tokenizer does not split texts into words, so it finds no added "
        "word as a whole (got 7); leave it out"
    )


def test_a_word_that_the_vocabulary_has_inside_others_stays_as_it_is() -> None:
    pieces = [("<unk>", 0.0), ("▁", -2.0), ("▁a", -2.0), ("ribosome", -3.0)]
    made = Tokenizer(models.Unigram([*pieces, *((each, -9.0) for each in LETTERS)], unk_id=0))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    assert made.encode("a ribosome").tokens == ["▁a", "▁", "ribosome"]
    assert choose_words([["a ribosome plasmid"] * 5], made, 9).pieces.keys() == {"plasmid"}


def base(folder: Path, kind: type[Any] = BertForMaskedLM, rows: int = 0) -> Path:
    """Save a BERT with a prediction head over letters and a few words, and ``rows`` to spare."""
    vocabulary = [*"[PAD] [UNK] [CLS] [SEP] [MASK]".split(), *LETTERS]
    vocabulary += [*(f"##{c}" for c in LETTERS), "the", "cat", "rib", "##some"]
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(3)
    config = BertConfig(vocab_size=len(vocabulary) + rows, hidden_size=32, num_hidden_layers=2,
                        num_attention_heads=4, intermediate_size=48, max_position_embeddings=48,
                        initializer_range=0.1)  # fmt: skip
    model = kind(config)
    for bias in (p for n, p in model.named_parameters() if n.endswith("bias")):
        bias.data.normal_()
    model.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("rows", [0, 1, 9])
@pytest.mark.parametrize("tied", [True, False])
def test_a_new_token_starts_as_the_mean_of_its_pieces(
    tmp_path: Path, tied: bool, rows: int
) -> None:
    folder = base(tmp_path / "base", rows=rows)
    model = BertForMaskedLM.from_pretrained(folder, tie_word_embeddings=tied)
    if not tied:
        model.cls.predictions.decoder.weight.data.normal_()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    words, count = ("ribosome", "cats"), len(tokenizer)
    pieces = [tokenizer(word, add_special_tokens=False)["input_ids"] for word in words]
    assert [len(each) for each in pieces] == [3, 2]
    state = torch.random.get_rng_state()
    tables = (model.get_input_embeddings(), model.get_output_embeddings())
    before = [table.weight.detach().clone() for table in tables]
    bias = model.get_output_embeddings().bias.detach().clone()
    add_words((), tokenizer, model)
    assert len(tokenizer) == count
    add_words(words, tokenizer, model)
    assert torch.equal(torch.random.get_rng_state(), state)
    ids = tokenizer.convert_tokens_to_ids(list(words))
    assert ids == [count, count + 1]
    for old, table in zip(before, (model.get_input_embeddings(), model.get_output_embeddings()),
                          strict=True):  # fmt: skip
        assert table.weight.shape[0] == max(count + 2, count + rows)
        torch.testing.assert_close(table.weight[:count], old[:count], rtol=0, atol=0)
        for token, own in zip(ids, pieces, strict=True):
            torch.testing.assert_close(table.weight[token], old[own].mean(0))
    assert model.config.vocab_size == model.get_output_embeddings().bias.shape[0]
    for token, own in zip(ids, pieces, strict=True):
        found = model.get_output_embeddings().bias[token]
        torch.testing.assert_close(found, bias[own].mean())
    one = model.get_input_embeddings().weight
    assert (model.get_output_embeddings().weight is one) == tied
    assert model(input_ids=torch.tensor([ids])).logits.shape[-1] == model.config.vocab_size


def texts(folder: Path) -> Path:
    draws = random.Random(0)
    words = "the cat ribosome plasmid a , .".split()
    path = folder / "texts.txt"
    path.write_text("\n".join(" ".join(draws.choices(words, k=7)) + f" {i}" for i in range(40)))
    return path


OPTIONS = {
    "model.add_tokens": 2, "model.max_length": 32, "train.batch_size": 8, "train.chunk_size": 3,
    "train.max_steps": 6, "train.save_steps": 2, "train.lr": 1e-3, "train.precision": "fp32",
    "train.threads": 1,
}  # fmt: skip
FILE = "model.safetensors"


def train(folder: Path, out: str) -> cse.Run:
    model = folder / "base" if (folder / "base").exists() else base(folder / "base")
    return cse.train("mlm", model=model, data=texts(folder), dev="none", out=folder / out,
                     options=OPTIONS)  # fmt: skip


def test_a_run_with_new_tokens_is_saved_resumed_and_read_by_sentence_transformers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = train(tmp_path, "whole")
    words = tomllib.loads((run.folder / "run.toml").read_text())["run"]["added_tokens"]
    assert words == ["plasmid", "ribosome"]
    before = AutoTokenizer.from_pretrained(tmp_path / "base")
    after = AutoTokenizer.from_pretrained(run.model)
    assert len(after) == len(before) + 2
    assert after.tokenize("Ribosomes, the ribosome")[-1].strip() == "ribosome"
    assert json.loads((run.model / "config.json").read_text())["vocab_size"] == len(after)
    own = AutoModel.from_pretrained(run.model).get_input_embeddings().weight
    start = AutoModel.from_pretrained(tmp_path / "base").get_input_embeddings().weight
    for word in words:
        mean = start[before(word, add_special_tokens=False)["input_ids"]].mean(0)
        moved = (own[after.convert_tokens_to_ids(word)] - mean).abs().max()
        assert 1e-3 < moved < 1e-2, "it was trained"
    some = ["the ribosome", "a plasmid, a cat", "ribosomes"]
    found = run.load().encode(some)
    st = pytest.importorskip("sentence_transformers", reason="its vectors are what is compared")
    theirs = st.SentenceTransformer(str(run.model), device="cpu").encode(some)
    np.testing.assert_allclose(theirs, found, atol=1e-5, rtol=0)
    step = TrainingLoop.step

    def stopping(self: TrainingLoop, **how: Any) -> StepResult:
        if self.done == 2:
            signal.raise_signal(signal.SIGTERM)
        return step(self, **how)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(TrainingLoop, "step", stopping)
        train(tmp_path, "halted")

    def never(*_: Any) -> DomainWords:
        raise AssertionError("the words are chosen once")

    monkeypatch.setattr("cse_engine.run.run.choose_words", never)
    resumed = cse.resume(tmp_path / "halted")
    assert (resumed.model / FILE).read_bytes() == (run.model / FILE).read_bytes()
    with cse.Session(cse.StoredRun(str(resumed.folder))) as session:
        assert session.trained["encoder.model.embeddings.word_embeddings.weight"].shape == own.shape


@pytest.mark.slow
def test_two_processes_add_the_same_words(tmp_path: Path, two_processes: TwoProcesses) -> None:
    run = train(tmp_path, "one")
    flags = [word for path, value in OPTIONS.items() for word in (f"--{path}", str(value))]
    words = ["train", "--recipe", "mlm", "--model", str(tmp_path / "base"), "--dev", "none",
             "--data", str(texts(tmp_path)), "--out", "two", *flags]  # fmt: skip
    for code, _, errors, _ in two_processes(
        "tests.fixtures.shared_command:command", str(tmp_path), words
    ):
        assert code == 0, errors
    one, two = (tomllib.loads((tmp_path / n / "run.toml").read_text()) for n in ("one", "two"))
    assert one["run"]["added_tokens"] == two["run"]["added_tokens"]
    tables = [AutoModel.from_pretrained(folder / "model").get_input_embeddings().weight
              for folder in (run.folder, tmp_path / "two")]  # fmt: skip
    assert tables[0].shape == tables[1].shape and len(tables[0]) == 77 + 2
