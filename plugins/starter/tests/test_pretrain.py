"""tools/pretrain.py: from text to a model folder, killed and resumed, and its parts."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from transformers import AutoModel, AutoTokenizer, BertForMaskedLM

from cse_core.errors import CseError

TOOLS = Path(__file__).resolve().parents[1] / "tools"
sys.path.insert(0, str(TOOLS))

import pretrain  # noqa: E402
from mlm.gradient import GradientPool  # noqa: E402
from mlm.model import ChunkedCrossEntropy, load_model, new_model  # noqa: E402
from mlm.rows import Special, batch_rows, cut_rows, epoch_batches, mask_tokens  # noqa: E402
from mlm.scores import encode, masked_loss  # noqa: E402
from mlm.text import TokenStore, open_store, read_texts, train_vocabulary  # noqa: E402
from mlm.word_vectors import (  # noqa: E402
    SMOOTHING,
    WINDOW,
    company_vectors,
    cooccurrences,
    open_vectors,
    training_tokens,
    word_weights,
)
from tokenizers import Tokenizer  # noqa: E402

SIZES = "--layers 2 --hidden 32 --heads 2 --vocab-size 160 --threads 1 --precision fp32".split()
SHORT = "--lengths 16:0.5,32:0.5 --batch-tokens 256 --lr 0.003 --log-steps 1".split()
NAMES = "anna ben clara dora emil frida gustav hanna".split()
VERBS = "paints sells repairs hides finds carries".split()
THINGS = "boat lamp clock basket ladder kite drum bell".split()
PLACES = "harbour garden attic market station bridge".split()


def made_up(count: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return [
        f"{rng.choice(NAMES).title()} {rng.choice(VERBS)} the {rng.choice(THINGS)} "
        f"number {i} near the {rng.choice(PLACES)}."
        for i in range(count)
    ]


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("texts")
    lines, articles = folder / "lines.txt.gz", folder / "articles.jsonl"
    with gzip.open(lines, "wt", encoding="utf-8") as out:
        out.write("\n".join(made_up(300, 1)) + "\n\n")
    sentences = made_up(200, 2)
    with articles.open("w", encoding="utf-8") as out:
        for i in range(0, 200, 10):
            few = sentences[i : i + 10]
            article = {"paras": [few[:5], few[5:]]} if i % 20 else {"sections": [["", few]]}
            out.write(json.dumps(article) + "\n")
    return [lines, articles]


def command(texts: list[Path], out: Path, *more: str) -> list[str]:
    return [*map(str, texts), "--out", str(out), *SIZES, *SHORT, *more]


@pytest.fixture(scope="module")
def finished(texts: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("finished")
    pretrain.main(command(texts, out, "--steps", "120"))
    return out


def test_a_run_learns_and_transformers_loads_it(finished: Path) -> None:
    scores = [json.loads(line) for line in (finished / "scores.jsonl").read_text().splitlines()]
    assert scores[-1]["step"] == 120
    assert scores[-1]["masked_loss"] < scores[0]["masked_loss"] - 0.5
    rates = [json.loads(line)["lr"] for line in (finished / "log.jsonl").read_text().splitlines()]
    assert len(rates) == 120 and max(rates) == pytest.approx(0.003, rel=0.02)
    assert rates[-1] < 0.003 / 100

    tokenizer = AutoTokenizer.from_pretrained(finished / "model")
    model = AutoModel.from_pretrained(finished / "model", dtype=torch.float32).eval()
    assert (model.config.num_hidden_layers, model.config.hidden_dropout_prob) == (2, 0.1)
    sentence = "Anna paints the boat near the harbour."
    encoded = tokenizer(sentence, return_tensors="pt")
    tokens = tokenizer.convert_ids_to_tokens(encoded.input_ids[0])
    assert (tokens[0], tokens[1][0], tokens[-1]) == ("[CLS]", "a", "[SEP]")
    ours = load_model(finished / "model")
    own_tokenizer = Tokenizer.from_file(str(finished / "model" / "tokenizer.json"))
    vectors = encode(ours, own_tokenizer, Special.of(own_tokenizer), [sentence])
    with torch.no_grad():
        expected = model(**encoded).last_hidden_state[0]
    torch.testing.assert_close(vectors["mean"][0], expected.mean(0), atol=1e-5, rtol=0)
    torch.testing.assert_close(vectors["cls"][0], expected[0], atol=1e-5, rtol=0)


def test_killed_and_resumed_equals_uninterrupted(
    texts: list[Path], finished: Path, tmp_path: Path
) -> None:
    arguments = command(texts, tmp_path, "--steps", "120", "--checkpoint-minutes", "0")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, str(TOOLS / "pretrain.py"), *arguments],
        stdout=subprocess.DEVNULL,
        env=environment,
    )
    log = tmp_path / "log.jsonl"
    deadline = time.monotonic() + 60
    while not log.is_file() or log.read_text().count("\n") < 5:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "model").exists()
    pretrain.main(command(texts, tmp_path, "--steps", "120"))
    steps = [json.loads(line)["step"] for line in log.read_text().splitlines()]
    assert steps[-1] == 120
    resumed, whole = (
        load_file(folder / "checkpoint.safetensors") for folder in (tmp_path, finished)
    )
    assert resumed.keys() == whole.keys()
    assert all(torch.equal(resumed[name], whole[name]) for name in whole)


def test_init_continues_from_a_model(texts: list[Path], finished: Path, tmp_path: Path) -> None:
    pretrain.main(command(texts, tmp_path, "--steps", "2", "--init", str(finished / "model")))
    before = json.loads((tmp_path / "scores.jsonl").read_text().splitlines()[0])
    after = json.loads((finished / "scores.jsonl").read_text().splitlines()[-1])
    assert before["masked_loss"] == pytest.approx(after["masked_loss"], abs=0.01)


def tiny_store(texts: list[Path], folder: Path) -> tuple[TokenStore, Tokenizer]:
    tokenizer = train_vocabulary(texts, 160)
    return open_store(folder, texts, tokenizer), tokenizer


def test_rows_begin_with_a_sentence_and_stay_in_their_text(
    texts: list[Path], tmp_path: Path
) -> None:
    store, _ = tiny_store(texts, tmp_path)
    starts, lengths = cut_rows(store, False, {16: 0.5, 32: 0.5}, np.random.default_rng(0))
    assert np.isin(starts, store.sentences[:-1]).all()
    edges = store.sentences[store.texts]
    text = np.searchsorted(edges, starts, side="right") - 1
    assert (starts + lengths <= edges[text + 1]).all()
    assert not store.held_out[text].any()
    assert lengths.max() == 30 and set(lengths) > {14, 30}
    batches = batch_rows(starts, lengths, 256, np.random.default_rng(0))
    assert sum(len(batch.starts) for batch in batches) == len(starts)
    assert sorted(np.concatenate([batch.starts for batch in batches])) == sorted(starts)
    assert all(len(b.starts) * (b.length + 2) <= 256 for b in batches)


def test_epochs_follow_from_seed_and_number(texts: list[Path], tmp_path: Path) -> None:
    store, _ = tiny_store(texts, tmp_path)
    first, again, second = (epoch_batches(store, {32: 1.0}, 256, 3, e) for e in (0, 0, 1))
    assert all((a.starts == b.starts).all() for a, b in zip(first, again, strict=True))
    assert any(
        len(a.starts) != len(b.starts) or (a.starts != b.starts).any()
        for a, b in zip(first, second, strict=False)
    )


def test_a_sentence_is_kept_once(tmp_path: Path) -> None:
    sentences = made_up(100, 3)
    lines, articles = tmp_path / "a.txt", tmp_path / "b.jsonl"
    lines.write_text("\n".join(sentences))
    articles.write_text(json.dumps({"paras": [sentences[:50], ["A new sentence here."]]}) + "\n")
    store, _ = tiny_store([lines, articles], tmp_path / "tokens")
    assert len(store.texts) - 1 == 101
    assert len(store.sentences) - 1 == 101
    assert 0 < store.held_out.sum() < 20


def test_masking_follows_bert(texts: list[Path]) -> None:
    special = Special(2, 3, 4, 200)
    ids = torch.full((200, 50), 7)
    ids[:, 0], ids[:, -1] = 2, 3
    masked = mask_tokens(ids, special, 0.2, np.random.default_rng(0))
    assert (masked.labels == 7).all()
    assert masked.ids[:, 0].eq(2).all() and masked.ids[:, -1].eq(3).all()
    assert len(masked.labels) / (200 * 48) == pytest.approx(0.2, abs=0.02)
    now = masked.ids.view(-1)[masked.positions]
    assert (now == 4).float().mean() == pytest.approx(0.8, abs=0.03)
    assert (now == 7).float().mean() == pytest.approx(0.1, abs=0.03)
    untouched = torch.ones(ids.numel(), dtype=torch.bool)
    untouched[masked.positions] = False
    assert (masked.ids.view(-1)[untouched] == ids.view(-1)[untouched]).all()


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("sentence_weight", [None, 0.5])
def test_gradients_equal_those_of_transformers(workers: int, sentence_weight: float | None) -> None:
    model = new_model(2, 32, 2, 200, seed=0)
    special = Special(2, 3, 4, 200)
    ids = torch.randint(5, 200, (20, 16), generator=torch.Generator().manual_seed(0))
    masked = mask_tokens(ids, special, 0.2, np.random.default_rng(0))
    vectors = torch.randn(200, 32, generator=torch.Generator().manual_seed(1))
    words = None if sentence_weight is None else vectors
    threads = torch.get_num_threads()
    pool = GradientPool(model, workers, torch.float32, words, sentence_weight or 0, piece_tokens=64)
    masked_value, sentence_value = pool.fill(masked)
    torch.set_num_threads(threads)

    reference = BertForMaskedLM(model.config).eval()
    reference.load_state_dict(model.state(), strict=False)
    reference.tie_weights()
    labels = torch.full(ids.shape, -100)
    labels.view(-1)[masked.positions] = masked.labels
    output = reference(masked.ids, labels=labels, output_hidden_states=True)
    last = output.hidden_states[-1]
    sentence = torch.zeros(())
    for row in range(20) if words is not None else ():
        target = sum(vectors[word] for word in ids[row, 1:-1])
        for vector in (last[row].mean(0), last[row, 0]):
            sentence = sentence + (1 - F.cosine_similarity(vector, target, dim=0)) / 20
    (output.loss + (sentence_weight or 0) * sentence).backward()
    assert masked_value == pytest.approx(output.loss.item(), abs=1e-5)
    assert sentence_value == pytest.approx(sentence.item(), abs=1e-5)
    expected = dict(reference.named_parameters())
    for name, parameter in zip(model.names, model.weights, strict=True):
        torch.testing.assert_close(parameter.grad, expected[name].grad, atol=1e-6, rtol=1e-4)


def test_cooccurrences_equal_a_loop_over_pairs() -> None:
    tokens = np.random.default_rng(0).integers(0, 7, 60)
    expected = np.zeros((7, 7))
    for first in range(60):
        for second in range(first + 1, min(60, first + WINDOW + 1)):
            weight = 1 - (second - first - 1) / WINDOW
            expected[tokens[first], tokens[second]] += weight
            expected[tokens[second], tokens[first]] += weight
    np.testing.assert_allclose(cooccurrences(tokens, 7), expected, rtol=1e-6)


def test_words_of_one_company_are_near_each_other() -> None:
    rng = np.random.default_rng(0)
    groups = [np.arange(0, 20), np.arange(20, 40)]
    tokens = np.concatenate([rng.choice(groups[i % 2], 50) for i in range(200)])
    vectors = company_vectors(torch.from_numpy(cooccurrences(tokens, 40)), 4)
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(40))
    cosines = vectors @ vectors.T
    assert cosines[:20, :20].mean() > cosines[:20, 20:].mean() + 0.2


def test_word_vectors_are_made_once_and_weights_fall_with_a_words_share(
    texts: list[Path], tmp_path: Path
) -> None:
    store, tokenizer = tiny_store(texts, tmp_path)
    size = tokenizer.get_vocab_size()
    vectors = open_vectors(tmp_path / "words", store, size, 64, seed=0)
    assert torch.equal(vectors, open_vectors(tmp_path / "words", store, size, 64, seed=1))
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(size))
    counts = np.bincount(training_tokens(store), minlength=size)
    expected = SMOOTHING / (SMOOTHING + counts / counts.sum())
    np.testing.assert_allclose(word_weights(store, size), expected, rtol=1e-5)


def test_empty_lines_of_a_text_file_part_its_texts(tmp_path: Path) -> None:
    file = tmp_path / "books.txt"
    file.write_text("\none\ntwo\n\n\nthree\n\n", encoding="utf-8")
    assert list(read_texts(file)) == [["one", "two"], ["three"]]
    file.write_text("one\ntwo\n\n", encoding="utf-8")
    assert list(read_texts(file)) == [["one"], ["two"]]


def test_chunked_cross_entropy_is_cross_entropy() -> None:
    logits = torch.randn(150, 40, dtype=torch.float64, requires_grad=True)
    labels = torch.randint(0, 40, (150,))
    expected = torch.autograd.grad(3 * F.cross_entropy(logits, labels), logits)[0]
    loss = ChunkedCrossEntropy.apply(logits, labels)
    assert loss.item() == pytest.approx(F.cross_entropy(logits, labels).item(), abs=1e-5)
    found = torch.autograd.grad(3 * loss, logits)[0]
    torch.testing.assert_close(found, expected, atol=1e-7, rtol=1e-5)


def test_masked_loss_of_a_uniform_model_is_the_log_of_the_vocabulary(
    texts: list[Path], tmp_path: Path
) -> None:
    store, tokenizer = tiny_store(texts, tmp_path)
    size = tokenizer.get_vocab_size()
    model = new_model(1, 16, 2, size, seed=0)
    for parameter in model.parameters():
        parameter.data.zero_()
    loss = masked_loss(model, store, Special.of(tokenizer), torch.float32)
    assert loss == pytest.approx(np.log(size), abs=1e-5)


def test_the_rate_rises_and_falls_with_the_budget() -> None:
    rates = [pretrain.learning_rate(f, 1e-3, 0.1) for f in (0.0, 0.05, 0.1, 0.55, 1.0, 1.2)]
    assert rates == pytest.approx([0.0, 5e-4, 1e-3, 5e-4, 0.0, 0.0])
    assert pretrain.learning_rate(0.0, 1e-3, 0.0) == 1e-3


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"x", "neither .txt nor .jsonl"),
        ("a.txt", b"\xff\xfe\xfa", "not UTF-8"),
        ("a.txt.gz", b"no gzip", "cannot be read"),
        ("a.jsonl", b'{"text": "x"}', "no list `sections`"),
        ("a.jsonl", b"{", "line 1: not a JSON article"),
    ],
)
def test_bad_texts_are_one_line_errors(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CseError, match=message):
        list(read_texts(tmp_path / name))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--steps", "9", "--minutes", "1"], "no single budget"),
        (["--steps", "0"], "--steps: must lie between"),
        (["--steps", "9", "--lengths", "16"], "--lengths: malformed"),
        (["--steps", "9", "--lengths", "600:1"], "512 positions"),
        (["--steps", "9", "--hidden", "33"], "not a multiple of --heads"),
        (["--steps", "9", "--init", "nowhere"], "no config.json"),
        (["--steps", "9", "--device", "abacus"], "--device: not usable here"),
        (["--steps", "200", "--lr", "0.1"], "has lr = 0.003"),
        (["--steps", "200", "--layers", "1", "--lr", "0.003"], "vocabulary = '2 x 32, 160'"),
    ],
)
def test_mistakes_exit_with_2(
    texts: list[Path],
    finished: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    more: list[str],
    message: str,
) -> None:
    out = finished if "--lr" in more else tmp_path
    with pytest.raises(SystemExit) as exit_:
        pretrain.main(command(texts, out, *more))
    assert exit_.value.code == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and message in error


def test_blank_missing_and_single_texts_and_damaged_checkpoints_are_refused(
    texts: list[Path], tmp_path: Path
) -> None:
    blank, single = tmp_path / "blank.txt", tmp_path / "single.txt"
    blank.write_text("\n \n")
    single.write_text("one sentence\n")
    tokenizer = train_vocabulary(texts, 160)
    for path, message in (
        (blank, "no text"),
        (single, "one single"),
        (tmp_path / "no.txt", "such"),
    ):
        with pytest.raises(CseError, match=message):
            open_store(tmp_path / "tokens", [path], tokenizer)
    run = tmp_path / "run"
    run.mkdir()
    (run / "checkpoint.safetensors").write_bytes(b"cut short")
    with pytest.raises(SystemExit):
        pretrain.main(command(texts, run, "--steps", "9"))
