"""What the augmenter hides, how often, and whose draws it makes."""

import pytest
import torch
from cse_mlm.mask import Mask
from cse_mlm.options import MaskOptions
from cse_testkit import make_context, make_setup
from cse_testkit.batches import tiny_tokenizer

from cse_core.errors import CseError
from cse_core.functional import hashed_uniform
from cse_core.types import NO_LABEL, StepContext, TokenBatch, View

VIEW = View("masked", "aux", "online")


def context() -> StepContext:
    """Return a context whose draws belong to rows, as those of a step do."""

    def uniform(name: str, tokens: TokenBatch) -> torch.Tensor:
        row = tokens.row_of_token()
        place = torch.arange(len(row)) - tokens.offsets[:-1][row]
        return hashed_uniform(len(name) + ord(name[-1]), tokens.owner[row], place)

    return make_context(uniform=uniform)


def rows(count: int) -> TokenBatch:
    tokenizer = tiny_tokenizer()
    texts = ["the boat leaves a green harbour in the morning without anna"] * count
    return tokenizer.wrap(tokenizer.content(texts))


def masked(tokens: TokenBatch, **options: object) -> TokenBatch:
    part = Mask(MaskOptions(**options), make_setup())  # type: ignore[arg-type]
    return part(tokens, tokens, VIEW, context())


def test_shares_are_those_of_the_options() -> None:
    tokens = rows(1500)
    found = masked(tokens, probability=0.4, masked=0.7, random=0.2)
    assert found.labels is not None
    chosen, content = found.labels != NO_LABEL, ~tokens.special
    assert not bool((chosen & tokens.special).any())
    assert torch.equal(found.labels[chosen], tokens.ids[chosen])
    assert torch.equal(found.ids[~chosen], tokens.ids[~chosen])
    share = float(chosen.sum() / content.sum())
    hidden = float((found.ids[chosen] == tiny_tokenizer().hf.mask_token_id).float().mean())
    same = float((found.ids[chosen] == tokens.ids[chosen]).float().mean())
    words = len(tiny_tokenizer().hf)
    assert abs(share - 0.4) < 0.02
    assert abs(hidden - (0.7 + 0.2 / words)) < 0.02
    assert abs(same - (0.1 + 0.2 / words)) < 0.02
    random = found.ids[chosen & (found.ids != tokens.ids)]
    assert len(random.unique()) > 0.9 * words, "a random token is any of the vocabulary"


def test_whole_words_are_chosen_together() -> None:
    tokens = rows(300)
    found = masked(tokens, probability=0.4, whole_words=True)
    assert found.labels is not None
    row, chosen = tokens.row_of_token(), found.labels != NO_LABEL
    by_word: dict[tuple[int, int], set[bool]] = {}
    for place in (~tokens.special).nonzero().squeeze(1).tolist():
        by_word.setdefault((int(row[place]), int(tokens.word[place])), set()).add(
            bool(chosen[place])
        )
    several = len(chosen[~tokens.special]) > len(by_word)
    assert several, "some words have several tokens"
    assert all(len(each) == 1 for each in by_word.values())


def test_a_row_is_masked_in_one_way_whatever_lies_beside_it() -> None:
    tokens = rows(8)
    whole = masked(tokens, probability=0.5)
    part = masked(tokens.take_rows(torch.tensor([5, 6])), probability=0.5)
    assert torch.equal(part.ids, whole.take_rows(torch.tensor([5, 6])).ids)


def test_another_token_hides_and_must_be_of_the_vocabulary() -> None:
    tokens = rows(20)
    found = masked(tokens, probability=0.5, masked=1.0, random=0.0, token="boat")
    assert found.labels is not None
    hidden = found.ids[found.labels != NO_LABEL].unique().tolist()
    assert hidden == [tiny_tokenizer().hf.convert_tokens_to_ids("boat")]
    with pytest.raises(CseError, match="token: the vocabulary has no such token.*'nowhere'"):
        masked(tokens, token="nowhere")
