"""A made-up corpus and tiny random encoders, so that tests need no network and no GPU."""

from __future__ import annotations

import atexit
import csv
import io
import json
import random
import shutil
import tempfile
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

import torch
from packaging.utils import canonicalize_name
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import AutoConfig, AutoModel, PreTrainedTokenizerFast

from cse_cli.api import load_texts
from cse_core.errors import CseError
from cse_core.protocols import Corpus

Family = Literal["bert", "roberta", "electra", "distilbert", "mpnet", "llama"]
NAMES = ("anna", "ben", "clara", "dora", "emil", "frida", "gustav", "hanna")
VERBS = ("paints", "sells", "repairs", "hides", "finds", "carries")
THINGS = ("boat", "lamp", "clock", "basket", "ladder", "kite", "drum", "bell")
PLACES = ("harbour", "garden", "attic", "market", "station", "bridge")
LINKS = ("the", "near", "and", "then", "not", "while", "in", "a", "it", "is", "old", "red")
WORDS = (*NAMES, *VERBS, *THINGS, *PLACES, *LINKS)
"""The words of the English columns."""
GERMAN = ("der", "die", "das", "malt", "findet", "boot", "lampe", "uhr", "garten", "brücke")
COLUMNS = ("text", "positive", "negative", "fraternal", "document", "title")
"""Columns with texts of their own kind in ``tiny_corpus``."""
CONTENT: dict[str, Callable[[random.Random], str]] = {
    "text": lambda draws: _sentence(draws),
    "float": lambda draws: f"{draws.uniform(0, 5):.2f}",
    "int": lambda draws: str(draws.randint(0, 9)),
    "label": lambda draws: draws.choice(THINGS),
}
"""A cell of each type of column."""
Columns = Sequence[str] | Mapping[str, str | Sequence[str]]
"""Names of columns, or with each its type of ``CONTENT``, or sample values that are repeated."""
TEACHER = 48
"""Hidden size of the tiny encoder that stands for every second one."""
POSITIONS = 512
"""Tokens of the longest row that a tiny encoder takes."""


def tiny_corpus(rows: int = 24, columns: Columns = ("text",), *, sentences: int = 4) -> Corpus:
    """Make a corpus of short sentences, the same for the same arguments.

    Among the texts are one of a single word (row 1), one longer than 32 tokens (row 2) and one that
    comes twice (rows 3 and 4), since parts must take them.

    Args:
        rows: How many rows.
        columns: Its columns, with types or sample values where they are a mapping; ``text`` is
            always there. Other names than ``COLUMNS`` are columns of plain sentences.
        sentences: Sentences of a document.
    """
    made: dict[str, Sequence[str]] = {}
    for name, content in {"text": "text", **typed(columns)}.items():
        draws = random.Random(f"0 {name}")
        if not isinstance(content, str):
            made[name] = [content[row % len(content)] for row in range(rows)]
        elif name == "positive":
            made[name] = [
                f"It is {draws.choice(NAMES)}: {text[0].lower()}{text[1:]}" for text in made["text"]
            ]
        elif name == "fraternal":
            made[name] = [
                " ".join(draws.choice(GERMAN) for _ in range(draws.randint(3, 8)))
                for _ in range(rows)
            ]
        elif name == "document":
            made[name] = [f"document {row // sentences}" for row in range(rows)]
        elif name == "title":
            made[name] = [f"The {THINGS[row // sentences % len(THINGS)]}" for row in range(rows)]
        else:
            made[name] = texts = [CONTENT[content](draws) for _ in range(rows)]
            if name == "text" and rows > 4:
                texts[1] = "Boat"
                texts[2] = " and then ".join(_sentence(draws).rstrip(".") for _ in range(5)) + "."
                texts[4] = texts[3]
    return _read(_kept(made))


def typed(columns: Columns) -> Mapping[str, str | Sequence[str]]:
    """Return the content of each column; a mere name is a column of texts."""
    return columns if isinstance(columns, Mapping) else dict.fromkeys(columns, "text")


@cache
def declared_columns(name: str) -> Mapping[str, str | Sequence[str]]:
    """Return the columns of made-up corpora that a distribution's ``pyproject.toml`` declares.

    For example::

        [tool.cse.columns]
        score = "float"
        topic = ["sport", "music"]

    Raises:
        CseError: If a column is neither a type nor a list of sample values.
    """
    path, declared = declared_in_project(name)
    columns: dict[str, Any] = declared.get("columns", {})
    for column, content in columns.items():
        cells = content if isinstance(content, list) else []
        if str(content) not in CONTENT and {type(cell) for cell in cells} != {str}:
            where = f"{path}: tool.cse.columns.{column}"
            hint = f"{', '.join(CONTENT)}, or a list of sample values as texts"
            raise CseError("is not a type", where=where, value=content, hint=hint)
    return columns


def declared_options(name: str, part: str) -> Mapping[str, Any]:
    """Return the options of a part, ``loss.NAME``, that its ``pyproject.toml`` declares.

    For example::

    [tool.cse.options.loss.distillation]
    teacher = "starter"
    """
    kind, _, short = part.partition(".")
    options: dict[str, Any] = (
        declared_in_project(name)[1].get("options", {}).get(kind, {}).get(short, {})
    )
    return options


def declared_unchecked(name: str, part: str) -> Sequence[str]:
    """Return what is not asked of a part, ``loss.NAME``, as its ``pyproject.toml`` declares.

    That are options that do nothing in a few steps, and ``gradient`` where it is not the slope of
    the value, as behind a stop-gradient::

        [tool.cse.unchecked]
        "loss.margin" = ["gradient", "chunk"]
    """
    names: Sequence[str] = declared_in_project(name)[1].get("unchecked", {}).get(part, ())
    return names


def declared_in_project(name: str) -> tuple[Path, dict[str, Any]]:
    """Return the file and ``[tool.cse]`` of where a distribution is installed from, or of here."""
    try:
        origin = json.loads(distribution(name).read_text("direct_url.json") or "{}").get("url", "")
    except PackageNotFoundError:
        origin = ""
    for folder in (unquote(urlsplit(origin).path) if origin.startswith("file:") else "", ""):
        path = Path(folder, "pyproject.toml")
        read = tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}
        named = str(read.get("project", {}).get("name", ""))
        if canonicalize_name(named) == canonicalize_name(name):
            return path, read.get("tool", {}).get("cse", {})
    return Path("pyproject.toml"), {}


def write_corpus(corpus: Corpus, path: Path) -> Path:
    """Write a corpus as the csv file that ``--data`` takes."""
    shutil.copy(data_file(corpus), path)
    return path


def data_file(corpus: Corpus) -> Path:
    """Return such a file, which lasts as long as the process."""
    rows = range(len(corpus))
    return _kept({name: corpus.column(name).take(rows) for name in corpus.names})


def _kept(columns: Mapping[str, Sequence[str]]) -> Path:
    out = io.StringIO()
    csv.writer(out).writerows([[*columns], *zip(*columns.values(), strict=True)])
    content = out.getvalue().encode()
    path = _folder() / f"{sha256(content).hexdigest()[:16]}.csv"
    if not path.exists():
        path.write_bytes(content)
    return path


@cache
def _read(path: Path) -> Corpus:
    return load_texts(str(path))


@cache
def _folder() -> Path:
    """Return a folder that lasts as long as the process."""
    folder = Path(tempfile.mkdtemp(prefix="cse-tiny-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _sentence(draws: random.Random) -> str:
    text = (
        f"{draws.choice(NAMES).title()} {draws.choice(VERBS)} the {draws.choice(THINGS)} "
        f"near the {draws.choice(PLACES)}"
    )
    if draws.random() < 0.5:
        text += f" and {draws.choice(VERBS)} {draws.randint(2, 99)} old {draws.choice(THINGS)}s"
    return f"{text}."


def tiny_encoder(
    folder: Path,
    cased: bool = False,
    family: Family = "bert",
    hidden: int = 32,
    layers: int = 2,
    seed: int = 0,
) -> Path:
    """Write a random encoder and its tokenizer to a folder.

    The vocabulary is WordPiece: some words of ``tiny_corpus`` whole, every letter for the others;
    it has a mask token. Rows may have 512 tokens.

    Args:
        folder: Where; made if it is not there.
        cased: Whether the vocabulary keeps capital letters.
        family: Model type. ``mpnet`` cannot be packed, so it is padded; ``llama`` is a decoder.
        hidden: Hidden size, a multiple of 2.
        layers: Transformer layers.
        seed: Of the weights.

    Returns:
        The folder, which ``AutoModel`` and ``AutoTokenizer`` load.
    """
    like_bert = family in ("bert", "electra", "distilbert")
    tokenizer = _tokenizer(like_bert, cased)
    if family == "llama":
        tokenizer.add_tokens(["_"])
    pad_id = tokenizer.pad_token_id
    sizes: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "pad_token_id": pad_id,
        # RoBERTa and MPNet count positions from behind the padding token's id.
        "max_position_embeddings": POSITIONS if like_bert else POSITIONS + pad_id + 1,
    }
    if family == "distilbert":
        sizes |= {"dim": hidden, "n_layers": layers, "n_heads": 2, "hidden_dim": 2 * hidden}
    else:
        sizes |= {"hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": 2}
        sizes["intermediate_size"] = 2 * hidden
    if family == "electra":
        sizes["embedding_size"] = hidden // 2
    sizes["tie_word_embeddings"] = True  # so that the weights have a head that predicts tokens
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModel.from_config(AutoConfig.for_model(family, **sizes))
        # Weights as drawn for BERT give almost equal vectors for all texts; these tell them apart.
        for parameter in model.parameters():
            if parameter.ndim > 1:
                torch.nn.init.normal_(parameter, std=0.1)
    folder.mkdir(parents=True, exist_ok=True)
    model.config.save_pretrained(folder)
    save_file(model.state_dict(), folder / "model.safetensors", {"format": "pt"})
    tokenizer.save_pretrained(folder)
    return folder


@cache
def shared_encoder(cased: bool = False, family: Family = "bert", hidden: int = 32) -> Path:
    """Return a tiny encoder's folder that lasts as long as the process; do not write to it."""
    folder = _folder() / f"{family}-{cased}-{hidden}"
    return tiny_encoder(folder, cased=cased, family=family, hidden=hidden)


def _tokenizer(like_bert: bool, cased: bool) -> PreTrainedTokenizerFast:
    """Return a tokenizer with the special tokens of BERT or RoBERTa, in the order of their ids."""
    marks = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
    if not like_bert:
        marks = {"unk": "<unk>", "pad": "<pad>", "cls": "<s>", "sep": "</s>", "mask": "<mask>"}
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    letters += list("0123456789.,:;?!'-äöüß")
    whole = [word for place, word in enumerate(WORDS) if place % 2 == 0]
    if cased:
        letters += [letter.upper() for letter in letters if letter.upper() != letter]
        whole += [word.title() for word in whole] + [word.upper() for word in whole]
    pieces = [*marks.values(), *letters, *(f"##{letter}" for letter in letters), *whole]
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    start, end = marks["cls"], marks["sep"]
    made = Tokenizer(models.WordPiece(vocabulary, unk_token=marks["unk"]))
    made.normalizer = normalizers.BertNormalizer(lowercase=not cased, strip_accents=False)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing(
        single=f"{start} $A {end}",
        pair=f"{start} $A {end} $B {end}",
        special_tokens=[(mark, vocabulary[mark]) for mark in (start, end)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=made,
        model_max_length=POSITIONS,
        do_lower_case=not cased,
        **{f"{name}_token": mark for name, mark in marks.items()},
    )
