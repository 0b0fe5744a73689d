from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import torch
from cse_translate.translator import TranslationOptions, Translator, load_translator

from cse_core.data import load_corpus
from cse_core.errors import CseError
from cse_core.recipes.settings import DataOptions
from plugins.translate.tests.translators import NUMBERS, make_many_languages, make_number_translator
from tests.fixtures.command_line import Cse, refused

ROWS = 60
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_number_translator(tmp_path_factory.mktemp("numbers"))


@pytest.fixture(scope="module")
def languages(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_many_languages(tmp_path_factory.mktemp("languages"))


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    """A table of numbers in words, each with its row's number."""
    draws = random.Random(3)
    path = tmp_path / "numbers.tsv"
    rows = [f"{' '.join(draws.choices(list(NUMBERS), k=1 + i % 4))}\t{i}" for i in range(ROWS)]
    path.write_text("\n".join(["text\tnumber", *rows]) + "\n")
    return path


def texts(path: Path) -> list[str]:
    return [line.split("\t")[0] for line in path.read_text().splitlines()[1:]]


def one_by_one(model: str, given: list[str], beams: int) -> list[str]:
    """Translate without batches, padding or order."""
    network, tokenizer = load_translator(model)
    found = []
    for text in given:
        ids = tokenizer([text], return_tensors="pt")["input_ids"]
        made = network.generate(ids, num_beams=beams, do_sample=False, max_new_tokens=15)
        found += tokenizer.batch_decode(made, skip_special_tokens=True)
    return found


@pytest.mark.parametrize("ending", ["jsonl", "csv", "tsv.gz", "parquet", "jsonl.gz"])
def test_a_column_is_translated_into_every_format(
    cse: Cse, model: str, numbers: Path, tmp_path: Path, ending: str
) -> None:
    out = tmp_path / f"parallel.{ending}"
    printed = cse("data", "translate", str(numbers), "--model", model, "--out", str(out),
               "--batch-size", "4", "--beams", "2")  # fmt: skip
    assert printed.code == 0, printed.err
    assert f"{ROWS} rows with fraternal are in {out}" in printed.out
    assert f"rows translated: {ROWS} of {ROWS}" in printed.err
    corpus = load_corpus(DataOptions(path=(str(out),)), datasets={})
    assert corpus.names == ("text", "fraternal", "number")
    assert list(corpus.column("number")) == [str(row) for row in range(ROWS)]
    made = list(corpus.column("fraternal"))
    given = texts(numbers)
    assert made == one_by_one(model, given, 2)
    right = [" ".join(NUMBERS[word] for word in text.split()) for text in given]
    assert sum(a == b for a, b in zip(made, right, strict=True)) > ROWS / 2
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_killed_run_goes_on_where_it_stopped(
    cse: Cse, model: str, numbers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["data", "translate", str(numbers), "--model", model, "--batch-size", "2"]
    whole, out = tmp_path / "whole.jsonl", tmp_path / "out.jsonl"
    assert cse(*words, "--out", str(whole)).code == 0
    translate, asked = Translator.translate, []

    def stopped(self: Translator, given: list[str], *rest: object) -> list[str]:
        asked.append(len(given))
        if len(asked) == 3:
            raise KeyboardInterrupt
        return translate(self, given, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Translator, "translate", stopped)
    printed = cse(*words, "--out", str(out))
    assert (printed.code, asked) == (130, [16, 16, 16]) and not out.exists()
    part = tmp_path / ".out.jsonl.part"
    with open(part, "ab") as file:
        file.write(b'{"texts": ["cut sho')
    refused(cse(*words, "--out", str(out), "--beams", "2"), "holds work begun with beams 4, not 2")
    printed = cse(*words, "--out", str(out))
    assert printed.code == 0, printed.err
    assert "32 rows were translated before: going on" in printed.err
    assert asked[3:] == [16, 12]
    assert out.read_bytes() == whole.read_bytes() and not part.exists()


def test_column_into_limit_prefix_and_json(
    cse: Cse, model: str, numbers: Path, tmp_path: Path
) -> None:
    out = tmp_path / "some.jsonl"
    printed = cse("data", "translate", str(numbers), "--model", model, "--out", str(out),
                  "--column", "number", "--into", "other", "--limit", "3",
                  "--prefix", "translate: ", "--quiet", "--json")  # fmt: skip
    assert printed.err == ""
    answer = json.loads(printed.out)
    assert (answer["rows"], answer["column"], answer["from"], answer["cut"]) == (
        3, "other", "number", 0,
    )  # fmt: skip
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["number"] for row in rows] == ["0", "1", "2"]
    translator = Translator(TranslationOptions(model=model, prefix="translate: "), CPU)
    assert translator.translate(["0", "1"]) == [row["other"] for row in rows[:2]]
    plain = Translator(TranslationOptions(model=model), CPU)
    assert translator.translate(["one"]) == plain.translate(["translate: one"])


def test_long_texts_are_cut_and_told(cse: Cse, model: str, tmp_path: Path) -> None:
    path, out = tmp_path / "long.txt", tmp_path / "out.tsv"
    path.write_text("one two\n" + "one " * 40 + "\n")
    printed = cse("data", "translate", str(path), "--model", model, "--out", str(out))
    assert "1 texts were cut to 16 tokens" in printed.err
    cut = Translator(TranslationOptions(model=model), CPU)
    long, short = cut.translate(["one " * 40, "one " * 15])
    assert long == short and cut.cut == 1


def test_max_length_cuts_texts_not_translations(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is made may be as long as the model can: 16 positions, one of them to begin with."""
    translator = Translator(TranslationOptions(model=model, max_length=4), CPU)
    generate, most = translator.model.generate, []

    def watched(**settings: object) -> torch.Tensor:
        most.append(settings["max_new_tokens"])
        found: torch.Tensor = generate(**settings)
        return found

    monkeypatch.setattr(translator.model, "generate", watched)
    assert len(translator.translate(["one two three"])) == 1
    assert most == [15]


def test_languages_of_a_model_of_several(cse: Cse, languages: str, tmp_path: Path) -> None:
    path, out = tmp_path / "x.txt", tmp_path / "out.jsonl"
    path.write_text("some text\nmore text\n")
    words = ("data", "translate", str(path), "--model", languages, "--out", str(out))
    refused(cse(*words), "--source-language: must be given")
    source = ("--source-language", "eng_Latn")
    refused(cse(*words, *source), "--target-language: must be given")
    refused(cse(*words, *source, "--target-language", "deu_Latin"), "did you mean deu_Latn")
    assert list(tmp_path.iterdir()) == [path]
    assert cse(*words, *source, "--target-language", "deu_Latn", "--max-length", "8").code == 0
    options = TranslationOptions(
        model=languages, source_language="fra_Latn", target_language="deu_Latn", max_length=8
    )
    made = Translator(options, CPU)
    code = made.tokenizer.convert_tokens_to_ids
    assert made.tokenizer(["a"])["input_ids"][0][0] == code("fra_Latn")
    ids = torch.tensor(made.tokenizer(["some text"])["input_ids"])
    generated = made.model.generate(input_ids=ids, max_new_tokens=4, **made._languages)
    assert int(generated[0, 1]) == code("deu_Latn")


def test_what_is_refused(cse: Cse, model: str, numbers: Path, tmp_path: Path) -> None:
    def call(*words: str, source: str = str(numbers), out: str = "out.tsv") -> None:
        words = (*words, "--model", model) if "--model" not in words else words
        refused(cse("data", "translate", source, "--out", str(tmp_path / out), *words), *said)

    said: tuple[str, ...] = ("--out", "unknown file type", "*.jsonl")
    call(out="out.txt")
    said = ("--out", "its folder does not exist")
    call(out="no/out.tsv")
    said = ("--out", "is the data itself", "name another file")
    call(out=numbers.name)
    said = ("--column", "no such column", "number")
    call("--column", "numbers")
    said = ("--into", "has this column already")
    call("--into", "number")
    said = ("--target-language", "no language codes", "--prefix")
    call("--target-language", "de")
    said = ("--model", "bert is not a sequence-to-sequence model")
    starter = Path(__file__).parents[3] / "plugins/starter/cse_starter/encoder"
    call("--model", str(starter))
    said = ("--model", "no such folder")
    call("--model", "./nothing")
    said = ("--model", "hub cannot be reached")
    call("--model", "someone/translator")
    pickled = tmp_path / "pickled"
    pickled.mkdir()
    (pickled / "config.json").write_text((Path(model) / "config.json").read_text())
    (pickled / "pytorch_model.bin").write_bytes(b"x")
    said = ("--model", "pickles are never loaded")
    call("--model", str(pickled))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["numbers.tsv", "pickled"]


def test_a_marian_folder(cse: Cse, tmp_path: Path) -> None:
    """Marian's tokenizer is of sentencepiece files, which other models' are not."""
    spm = pytest.importorskip("sentencepiece")
    from transformers import MarianConfig, MarianMTModel

    folder = tmp_path / "marian"
    folder.mkdir()
    path = tmp_path / "x.txt"
    path.write_text("\n".join(" ".join(NUMBERS) for _ in range(20)) + "\n")
    spm.SentencePieceTrainer.train(
        input=str(path), model_prefix=str(folder / "source"), vocab_size=40,
        hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    (folder / "source.model").rename(folder / "source.spm")
    (folder / "target.spm").write_bytes((folder / "source.spm").read_bytes())
    pieces = spm.SentencePieceProcessor(str(folder / "source.spm"))
    known = [pieces.id_to_piece(i) for i in range(pieces.get_piece_size())]
    vocabulary = {piece: i for i, piece in enumerate(dict.fromkeys(["</s>", "<unk>", *known]))}
    pad = vocabulary["<pad>"] = len(vocabulary)
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "MarianTokenizer", "model_max_length": 32})
    )
    config = MarianConfig(
        vocab_size=len(vocabulary), pad_token_id=pad, decoder_start_token_id=pad, eos_token_id=0,
        forced_eos_token_id=0, d_model=16, encoder_layers=1, decoder_layers=1,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=32,
        decoder_ffn_dim=32, max_position_embeddings=32, init_std=1.0,
    )  # fmt: skip
    MarianMTModel(config).save_pretrained(folder)
    out = tmp_path / "out.jsonl"
    printed = cse("data", "translate", str(path), "--model", str(folder), "--out", str(out),
               "--limit", "3")  # fmt: skip
    assert printed.code == 0, printed.err
    assert len({json.loads(line)["fraternal"] for line in out.read_text().splitlines()}) == 1


def test_the_translated_column_trains(cse: Cse, model: str, numbers: Path, tmp_path: Path) -> None:
    out = tmp_path / "parallel.parquet"
    cse("data", "translate", str(numbers), "--model", model, "--out", str(out), "--quiet")
    printed = cse("train", "--data", str(out), "--set", "views.positive.column=fraternal",
               "--train.max_steps", "2", "--train.batch_size", "4", "--dev", "none", "--out",
               str(tmp_path / "run"))  # fmt: skip
    assert printed.code == 0, printed.err


def test_damaged_begun_work_is_refused(tmp_path: Path) -> None:
    from cse_translate.shards import ShardFile

    path = tmp_path / ".x.part"
    path.write_text("no json\n")
    with pytest.raises(CseError, match="not a file of unfinished work"):
        ShardFile(path, {"model": "x"})
