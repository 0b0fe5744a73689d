"""Poolers of decoders beside the numbers of the authors' code (``source`` in golden.json)."""

import json
from pathlib import Path
from typing import Any

import cse_starter
import pytest
import torch
from cse_llm2vec.echo import Echo
from cse_llm2vec.one_word import OneWord
from cse_llm2vec.options import EchoOptions, OneWordOptions
from cse_testkit import make_batch, make_context, make_part, make_setup, tiny_tokenizer
from pydantic import ValidationError
from transformers import AutoTokenizer

from cse_core.types import Hidden, TokenBatch
from cse_defaults.transformers.tokenizer import TextTokenizer
from tests.shared import compare, tensor

CASES: Any = json.loads((Path(__file__).parent / "golden.json").read_text())
STARTER = Path(cse_starter.__file__).parent / "encoder"
TOKENIZER = TextTokenizer(AutoTokenizer.from_pretrained(str(STARTER)))


def echo(tokenizer: Any = TOKENIZER, **options: Any) -> Echo:
    return Echo(EchoOptions(**options), make_setup(tokenizer=tokenizer))


def read(part: Any, texts: list[str], longest: int | None = None) -> TokenBatch:
    """Return the rows of texts, as the encoder gets them."""
    content = part.content(TOKENIZER.content(texts))
    return TOKENIZER.wrap(content, part.prompt("anchor"), longest)


def of_rows(tokens: TokenBatch, values: Any) -> list[Any]:
    return [part.tolist() for part in values.split(tokens.lengths.tolist())]


@pytest.mark.parametrize("pooling", ["mean", "last"])
def test_a_text_is_read_twice_and_its_second_reading_pooled(pooling: Any) -> None:
    case = CASES["echo"]
    part = echo(longest=case["longest"], pooling=pooling)
    tokens = read(part, case["texts"])
    real = torch.tensor(case["attention_mask"]).bool()
    wanted = [torch.tensor(row)[m].tolist() for row, m in zip(case["ids"], real, strict=True)]
    assert of_rows(tokens, tokens.ids) == wanted
    found = part.pool(Hidden(tensor(case["states"])[real]), tokens)
    assert torch.allclose(found, tensor(case[pooling]), rtol=0, atol=1e-9)


def test_what_is_repeated_is_of_the_text_and_nothing_else() -> None:
    tokens = read(echo(), ["Anna boat", "", "boat"])
    assert of_rows(tokens, tokens.source)[0] == [-1, -1, -1, 0, 1, -1, -1, -1, 0, 1, -1]
    assert of_rows(tokens, tokens.special)[2] == [True] * 3 + [False] + [True] * 3 + [False, True]
    states = torch.arange(len(tokens.ids), dtype=torch.float64)[:, None]
    firsts = [8, int(tokens.offsets[2]) - 1, int(tokens.offsets[3]) - 2]
    stops = tokens.offsets[1:].tolist()
    wanted = [sum(range(a, b)) / (b - a) for a, b in zip(firsts, stops, strict=True)]
    assert echo().pool(Hidden(states), tokens)[:, 0].tolist() == wanted


def test_the_end_token_is_put_behind() -> None:
    for end in (True, False):
        hf = AutoTokenizer.from_pretrained(str(STARTER))
        hf.eos_token = hf.sep_token
        hf.backend_tokenizer.post_processor = None
        given = TextTokenizer(hf)
        echo(given, end=end)
        assert given.after == ([hf.eos_token_id] if end else [])


def test_the_state_of_the_templates_last_token() -> None:
    case = CASES["prompteol"]
    before, after = OneWord(OneWordOptions(), make_setup()).prompt("positive")
    assert f"{before}{case['text'].lower()}{after}" == case["prompt"]
    for behind in ([], [3]):
        tokenizer = tiny_tokenizer()
        setup = make_setup(tokenizer=type("Given", (), {"after": behind, "hf": tokenizer.hf})())
        tokens = TOKENIZER.wrap(TOKENIZER.content(["boat", "Anna boat"]))
        states = torch.arange(len(tokens.ids), dtype=torch.float64)[:, None]
        found = OneWord(OneWordOptions(), setup).pool(Hidden(states), tokens)[:, 0]
        assert found.tolist() == [2 - len(behind), 6 - len(behind)]


def test_the_loss_of_triplets() -> None:
    case = CASES["prompteol"]
    names = ("anchor", "positive", "negative")
    leaves = {name: tensor(case[name]).requires_grad_(True) for name in names}
    batch = make_batch(leaves, views={"positive": "positive", "negative": "negative"})
    part, ctx = make_part("loss", "infonce"), make_context(batch)
    negatives = ctx.negatives(batch, part.options)
    value = part(batch, batch.targets["positive"], negatives, ctx).value
    compare(value, leaves, case, 1e-9)


@pytest.mark.parametrize("template", ["no text", "[X] and [X]", "at the end [X]"])
def test_templates_of_one_text(template: str) -> None:
    with pytest.raises(ValidationError, match=r"a template has \[X\] once, and words behind it"):
        OneWordOptions(template=template)


@pytest.mark.parametrize("template", ["[X]", "[X] again: [X].", "[X] [X] [X]"])
def test_templates_of_two_texts(template: str) -> None:
    with pytest.raises(ValidationError, match=r"a template has \[X\] twice, and ends in it"):
        EchoOptions(template=template)
