"""Which words are deleted: beside a loop, over chunks and processes, of rows without words."""

from dataclasses import replace

import torch
from cse_denoising.delete_words import DeleteWords
from cse_denoising.options import DeleteWordsOptions
from cse_testkit import make_context, make_setup, tiny_tokenizer

from cse_core.functional import hashed_uniform
from cse_core.types import StepContext, TokenBatch, View

TEXTS = ["Anna paints the boat near the harbour and hides 42 lamps.", "Boat", "zzzz qqqq", "a b"]
VIEW = View("anchor", "anchor", "online", TEXTS)


def context(step: int = 0) -> StepContext:
    def uniform(name: str, tokens: TokenBatch) -> torch.Tensor:
        row = tokens.row_of_token()
        return hashed_uniform(step + 11, tokens.owner[row], tokens.positions)

    return make_context().replace(uniform=uniform)


def deleted(tokens: TokenBatch, step: int = 0, probability: float = 0.6) -> TokenBatch:
    part = DeleteWords(DeleteWordsOptions(probability=probability), make_setup())
    return part(tokens, None, VIEW, context(step))


def by_hand(tokens: TokenBatch, step: int, probability: float) -> list[list[int]]:
    """Return the source of the tokens that stay, word by word."""
    draws, rows = context(step).uniform("kept", tokens), []
    for row in range(tokens.rows):
        words: dict[int, list[int]] = {}
        for place in range(int(tokens.offsets[row]), int(tokens.offsets[row + 1])):
            words.setdefault(int(tokens.word[place]), []).append(place)
        drawn = {word: float(draws[places[0]]) for word, places in words.items()}
        stay = [word for word, draw in drawn.items() if draw >= probability]
        stay = stay or [max(drawn, key=lambda word: drawn[word])]
        rows.append([int(tokens.source[place]) for word in stay for place in words[word]])
    return rows


def test_whole_words_go_and_one_stays() -> None:
    tokens = tiny_tokenizer().content(TEXTS)
    assert int(tokens.lengths[2]) > 4, "a word of several tokens"
    for step in range(30):
        for probability in (0.3, 0.6, 0.95):
            found = deleted(tokens, step, probability)
            kept = [part.tolist() for part in found.source.split(found.lengths.tolist())]
            assert kept == by_hand(tokens, step, probability)
            assert bool((found.lengths > 0).all())
            assert [p.tolist() for p in found.positions.split(found.lengths.tolist())] == [
                list(range(len(row))) for row in kept
            ]


def test_its_share_is_the_probability() -> None:
    tokens = tiny_tokenizer().content([" ".join(["boat"] * 50)] * 40)
    share = sum(len(deleted(tokens, step).ids) for step in range(5)) / (5 * 40 * 50)
    assert abs(share - 0.4) < 0.02


def test_special_tokens_and_the_order_of_positions_stay() -> None:
    tokens = tiny_tokenizer().content(TEXTS[:1])
    count = len(tokens.ids)
    special = torch.arange(count) < 2
    backward = replace(tokens, special=special, positions=torch.arange(count).flip(0))
    found = deleted(backward, probability=0.9)
    assert found.special.tolist()[:2] == [True, True] and not bool(found.special[2:].any())
    assert len(found.ids) > 2
    assert found.positions.tolist() == list(range(len(found.ids)))[::-1]
    nothing = tokens.take_rows(torch.zeros(0, dtype=torch.long))
    assert deleted(nothing).rows == 0
