"""Token tables kept on disk: the same as made again, made once, and never in the way."""

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import platformdirs
import pytest
import torch
from cse_testkit.tiny import shared_encoder
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from tokenizers.pre_tokenizers import PreTokenizer
from transformers import PreTrainedTokenizerFast

from cse_cli.models.saved_model import load
from cse_cli.terminal.progress import SilentReporter
from cse_cli.texts import table_cache as token_cache
from cse_cli.texts.table_cache import table_key, token_table
from cse_defaults.transformers.pretrained import load_tokenizer
from cse_defaults.transformers.tokenizer import TextTokenizer
from cse_engine.step.sentence_encoder import SentenceEncoder
from cse_engine.step.token_table import TokenTable
from cse_engine.step.token_table import token_table as new_table
from tests.fixtures.tiny import registry

TEXTS = [f"anna paints the old boat {'near the garden ' * (i % 3)}{i}" for i in range(30)]


class Heard(SilentReporter):
    def __init__(self) -> None:
        super().__init__()
        self.steps: list[tuple[int, int]] = []

    def progress(self, done: int, total: int, what: str) -> None:
        assert what == "texts tokenised"
        self.steps.append((done, total))


def starter_like() -> TextTokenizer:
    return TextTokenizer(load_tokenizer(shared_encoder()))


def encoder_of(**how: Any) -> SentenceEncoder:
    return load(str(shared_encoder()), registry(), **how).sentence_encoder


def words(vocabulary: Sequence[str], **settings: Any) -> TextTokenizer:
    ids = {word: place for place, word in enumerate(["[UNK]", "[CLS]", *vocabulary])}
    made = Tokenizer(models.WordLevel(ids, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return TextTokenizer(
        PreTrainedTokenizerFast(tokenizer_object=made, unk_token="[UNK]", **settings)
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, in which small tables are kept too."""
    monkeypatch.setenv("CSE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(token_cache, "LARGE", 10)
    return tmp_path / "cache" / "tokens"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many texts each table had that was made."""
    counts: list[int] = []
    plain = token_cache.new_table

    def table(tokenizer: TextTokenizer, texts: Sequence[str], *given: Any) -> TokenTable:
        counts.append(len(texts))
        return plain(tokenizer, texts, *given)

    monkeypatch.setattr(token_cache, "new_table", table)
    return counts


def same(one: TokenTable, other: TokenTable) -> None:
    for name in ("ids", "word", "offsets"):
        first, second = getattr(one, name), getattr(other, name)
        assert first.dtype == second.dtype and torch.equal(first, second), name


def files(folder: Path, pattern: str = "*.safetensors") -> list[Path]:
    return sorted(folder.glob(pattern))


def test_what_is_read_is_what_was_made(folder: Path, made: list[int]) -> None:
    for longest in (None, 4):
        tokenizer = starter_like()
        expected = new_table(tokenizer, TEXTS, longest)
        del made[:]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            first = token_table(TEXTS, tokenizer, longest)
            same(first, expected)
            first.ids.zero_()  # it is nobody's but its reader's
            same(token_table(tuple(TEXTS), starter_like(), longest), expected)
        assert made == [len(TEXTS)]
    assert all(path.stat().st_mode & 0o077 == 0 for path in files(folder)), "ids tell the texts"
    assert len(files(folder)) == 2


def test_a_table_is_the_tokenizer_s_own_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    byte_level = Tokenizer(
        models.BPE({c: i for i, c in enumerate(pre_tokenizers.ByteLevel.alphabet())}, [])
    )  # noqa: E501
    byte_level.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    whole = Tokenizer(models.WordLevel({"[UNK]": 0, "a b": 1}, unk_token="[UNK]"))
    whole.normalizer = normalizers.Strip()
    texts = ["ein Fluß", "a b", " two  blanks ", "naïve 東京", "", "a " * 40]
    for backend in (byte_level, whole, starter_like().hf.backend_tokenizer):
        # What a tokenizer.json brings along must not count.
        backend.enable_truncation(3)
        backend.enable_padding(length=9)
        tokenizer = TextTokenizer(PreTrainedTokenizerFast(tokenizer_object=backend))
        for longest in (None, 5):
            table = new_table(tokenizer, texts, longest)
            plain = tokenizer.hf(
                texts, add_special_tokens=False, truncation=longest is not None, max_length=longest
            )
            for place, row in enumerate(plain.encodings):
                part = slice(int(table.offsets[place]), int(table.offsets[place + 1]))
                assert table.ids[part].tolist() == row.ids
                assert table.word[part].tolist() == [-1 if w is None else w for w in row.word_ids]
    whole = new_table(starter_like(), TEXTS, 5)
    heard: list[int] = []
    monkeypatch.setattr("cse_engine.step.token_table.AT_ONCE", 7)
    same(new_table(starter_like(), TEXTS, 5, heard.append), whole)
    assert heard == [7, 14, 21, 28, 30]
    assert new_table(starter_like(), [], 5).offsets.tolist() == [0]


def test_the_key_is_of_texts_tokenizer_and_cut() -> None:
    tokenizer = words(["a", "b", "ab"])
    key = table_key(TEXTS, tokenizer, 8)
    tokenizer.hf.backend_tokenizer.enable_padding(length=5)
    tokenizer.hf.backend_tokenizer.enable_truncation(2)
    assert table_key(list(TEXTS), words(["a", "b", "ab"]), 8) == key
    assert table_key(TEXTS, tokenizer, 8) == key
    others = [
        table_key([*TEXTS[:-1], TEXTS[-1] + " "], tokenizer, 8),
        table_key(TEXTS[::-1], tokenizer, 8),
        table_key(TEXTS, tokenizer, 9),
        table_key(TEXTS, tokenizer, None),
        table_key(TEXTS, words(["a", "ab", "b"]), 8),
        table_key(TEXTS, words(["a", "b", "ab"], truncation_side="left"), 8),
        table_key(["ab", "c"], tokenizer, 8),
        table_key(["a", "bc"], tokenizer, 8),
    ]
    assert len({key, *others}) == len(others) + 1
    added = words(["a", "b", "ab"])
    added.hf.add_tokens(["<extra>"])
    assert table_key(TEXTS, added, 8) != key


def test_a_damaged_file_is_made_anew(folder: Path, made: list[int]) -> None:
    tokenizer = starter_like()
    expected = token_table(TEXTS, tokenizer, 8)
    (path,) = files(folder)
    right = path.read_bytes()
    token_table(TEXTS[:-1], tokenizer, 8)
    other = next(each for each in files(folder) if each != path).read_bytes()
    flipped = right[:-9] + bytes([right[-9] ^ 1]) + right[-8:]
    for wrong in (right[: len(right) // 2], b"garbage" * 50, b"", other, flipped):
        path.unlink()  # what was read is still mapped
        path.write_bytes(wrong)
        del made[:]
        same(token_table(TEXTS, tokenizer, 8), expected)
        assert made == [len(TEXTS)] and path.read_bytes() == right
        same(token_table(TEXTS, tokenizer, 8), expected)
        assert made == [len(TEXTS)]


def test_off_and_small_data_keep_nothing(
    folder: Path, made: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = Heard()
    token_table(TEXTS[:9], starter_like(), 8, heard)
    assert heard.steps == [] and not folder.exists() and made == [9]
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda app: pytest.fail("asked for"))
    for what in ("", "off", " OFF "):
        monkeypatch.setenv("CSE_CACHE", what)
        heard = Heard()
        token_table(TEXTS, starter_like(), 8, heard)
        assert heard.messages == [] and heard.steps == [(30, 30)]
        assert not folder.exists()
    assert made == [9, 30, 30, 30]
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda app: str(folder / app))
    monkeypatch.delenv("CSE_CACHE")
    token_table(TEXTS, starter_like(), 8)
    assert len(files(folder / "cse" / "tokens")) == 1, "the user's folder by default"


def no_room(*_: object) -> None:
    raise OSError(28, "No space left on device")


class Letters:
    """A step of a tokenizer that is written in Python."""

    def pre_tokenize(self, text: Any) -> None:
        text.split(lambda _, part: [part])


def test_what_cannot_be_kept_is_told_once_and_used_all_the_same(
    folder: Path, made: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full, a folder that cannot be made, a tokenizer that cannot be written."""

    def reported(tokenizer: TextTokenizer) -> str:
        heard = Heard()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            same(token_table(TEXTS, tokenizer, 8, heard), new_table(tokenizer, TEXTS, 8))
        assert files(folder, "*") == []
        (printed,) = heard.messages
        return printed

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", no_room)
        where = f"the token cache is not written in {folder}: "
        assert reported(starter_like()) == f"{where}No space left on device"
    changed = starter_like()
    changed.hf.backend_tokenizer.pre_tokenizer = PreTokenizer.custom(Letters())
    assert reported(changed).startswith("the token cache is not written: ")
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("CSE_CACHE", str(tmp_path / "file"))
    where = f"the token cache is not written in {tmp_path / 'file' / 'tokens'}: "
    assert reported(starter_like()).startswith(where)


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_only_plain_files_are_read(folder: Path, made: list[int], kind: str) -> None:
    expected = token_table(TEXTS, starter_like(), 8)
    (path,) = files(folder)
    if kind == "pipe":
        path.unlink()
        os.mkfifo(path)
    else:
        path.symlink_to(path.rename(folder / "elsewhere"))
    same(token_table(TEXTS, starter_like(), 8), expected)
    assert made == [len(TEXTS)] * 2
