"""tools/pretrain.py: from text to a model folder, and its parts."""

import gzip
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from transformers import AutoModel, AutoTokenizer, BertForMaskedLM

from cse_core.errors import CseError

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

import pretrain  # noqa: E402
from pretrain import Settings, losses  # noqa: E402
from pretraining_texts import (  # noqa: E402
    Tokens,
    batch_rows,
    cut_rows,
    read_texts,
    tokenize,
    train_vocabulary,
)

SMALL = Settings(
    layers=2,
    hidden=32,
    heads=2,
    vocabulary=160,
    lengths={16: 0.5, 32: 0.5},
    positions=256,
    lr=0.003,
    tokens=25_000,
    log_steps=1,
    evaluate_steps=10,
)
WORDS = ("anna ben clara dora emil", "paints sells repairs", "boat lamp clock", "harbour attic")


def made_up(count: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    who, does, what, where = ([*words.split()] for words in WORDS)
    return [
        f"{rng.choice(who).title()} {rng.choice(does)} the {rng.choice(what)} number {i} near the "
        f"{rng.choice(where)}."
        for i in range(count)
    ]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
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


@pytest.fixture(scope="module")
def tokens(files: list[Path]) -> Tokens:
    return tokenize(files, train_vocabulary(files, 160))


def test_a_run_learns_and_transformers_loads_it(files: list[Path], tmp_path: Path) -> None:
    model = pretrain.pretrain(files, tmp_path, SMALL)
    log = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert log[-1]["held_out"] < log[9]["held_out"] - 0.3
    assert log[-1]["sentence"] < log[0]["sentence"] - 0.1
    assert log[-2]["tokens"] < SMALL.tokens <= log[-1]["tokens"]
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "model")
    loaded = AutoModel.from_pretrained(tmp_path / "model", dtype=torch.float32).eval()
    assert (loaded.config.num_hidden_layers, loaded.config.hidden_dropout_prob) == (2, 0.1)
    encoded = tokenizer("Anna paints the boat near the harbour.", return_tensors="pt")
    named = tokenizer.convert_ids_to_tokens(encoded.input_ids[0])
    assert (named[0], named[1][0], named[-1]) == ("[CLS]", "a", "[SEP]")
    with torch.no_grad():
        wanted, found = model.float().bert(**encoded), loaded(**encoded)
    torch.testing.assert_close(wanted.last_hidden_state, found.last_hidden_state)


def test_the_losses_are_those_of_transformers_and_of_a_loop() -> None:
    words = F.normalize(torch.randn(160, 32, generator=torch.Generator().manual_seed(1)), dim=1)
    model = pretrain.new_model(SMALL, words)
    ids = torch.randint(5, 160, (8, 16), generator=torch.Generator().manual_seed(0))
    places = torch.tensor([3, 20, 21, 90])
    labels = ids.flatten()[places]
    masked = ids.flatten().index_fill(0, places, 4).view_as(ids)
    with torch.autocast("cpu", enabled=False):
        pretrain._fast, fast = (lambda: False), pretrain._fast
        loss, sentence = losses(model, pretrain.Masked(masked, places, labels), words)
        pretrain._fast = fast
    reference = BertForMaskedLM(model.config).eval()
    reference.load_state_dict(model.state_dict())
    given = torch.full_like(ids.flatten(), -100).index_copy(0, places, labels).view_as(ids)
    output = reference(masked, labels=given, output_hidden_states=True)
    torch.testing.assert_close(loss, output.loss)
    last, expected = output.hidden_states[-1], torch.zeros(())
    for row in range(8):
        target = sum(words[word] for word in ids[row, 1:-1])
        for vector in (last[row].mean(0), last[row, 0]):
            expected = expected + (1 - F.cosine_similarity(vector, target, dim=0)) / 8
    torch.testing.assert_close(sentence, expected)


def test_rows_begin_with_a_sentence_and_stay_in_their_text(tokens: Tokens) -> None:
    starts, lengths = cut_rows(tokens, False, SMALL.lengths, np.random.default_rng(0))
    assert np.isin(starts, tokens.sentences[:-1]).all()
    edges = tokens.sentences[tokens.texts]
    text = np.searchsorted(edges, starts, side="right") - 1
    assert (starts + lengths <= edges[text + 1]).all()
    assert not tokens.held_out[text].any()
    assert lengths.max() == 30 and set(lengths) > {14, 30}
    rows = batch_rows(starts, lengths, 256, np.random.default_rng(0))
    assert sorted(np.concatenate([each.starts for each in rows])) == sorted(starts)
    assert all(len(each.starts) * (each.length + 2) <= 256 for each in rows)


def test_a_sentence_is_kept_once_and_empty_lines_part_texts(tmp_path: Path) -> None:
    sentences = made_up(100, 3)
    lines, articles = tmp_path / "a.txt", tmp_path / "b.jsonl"
    lines.write_text("\n".join(sentences))
    articles.write_text(json.dumps({"paras": [sentences[:50], ["A new sentence here."]]}) + "\n")
    tokens = tokenize([lines, articles], train_vocabulary([lines], 160))
    assert (len(tokens.texts) - 1, len(tokens.sentences) - 1) == (101, 101)
    assert 0 < tokens.held_out.sum() < 20
    lines.write_text("\none\ntwo\n\n\nthree\n\n", encoding="utf-8")
    assert list(read_texts(lines)) == [["one", "two"], ["three"]]


def test_mistakes_are_one_line_and_exit_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, content, message in (
        ("no.txt", None, "No such file"),
        ("a.txt", b"\xff\xfe\xfa", "UnicodeDecodeError"),
        ("a.txt.gz", b"no gzip", "BadGzipFile"),
        ("a.jsonl", b'{"text": "x"}', "KeyError('sections')"),
        ("b.jsonl", b"{", "JSONDecodeError"),
        ("one.txt", b"one sentence\n", "fewer than two texts"),
    ):
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(SystemExit) as exit_:
            pretrain.main([str(path), "--out", str(tmp_path / "run")])
        error = capsys.readouterr().err
        assert exit_.value.code == 2 and error.count("\n") == 1 and message in error, error
    two = tmp_path / "two.txt"
    two.write_text("a\nb\n")
    with pytest.raises(CseError, match="too little"):
        next(pretrain.batches(tokenize([two], train_vocabulary([two], 64)), Settings()))
