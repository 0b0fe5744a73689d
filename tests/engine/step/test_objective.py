"""What a step's loss is made of: weights, directions, stores of its level, columns, its rate."""

import pytest
import torch

from cse_engine.run.loop import TrainingLoop
from cse_engine.run.rounds import TrainingRound
from cse_engine.step.input_gradients import GradientField
from cse_engine.step.row_keys import token_keys
from tests.fixtures.tiny import Build, sentences

CLS = '[[pool]]\nuse = "cls"\n'
PLAIN = ("model.dropout=0",)


def test_losses_are_weighted_and_added_and_stores_asked_at_their_level(build: Build) -> None:
    recipe = CLS + (
        '[[loss]]\nuse = "infonce"\n[[loss]]\nuse = "infonce"\nname = "second"\n'
        'temperature = 0.5\nweight = "linear(0,1)"\n'
    )
    bench = build(recipe, *PLAIN)
    for step in (0, 5):
        result = bench.step(step)
        parts = result.parts
        wanted = parts["infonce.loss"] + step / 20 * parts["second.loss"]
        assert float(result.loss) == pytest.approx(float(wanted), rel=1e-6)
    recipe = CLS + (
        '[[pool]]\nuse = "cut"\n[[negatives]]\nuse = "queue"\n[[loss]]\nuse = "infonce"\n'
        '[[loss]]\nuse = "infonce"\nname = "local"\nlevel = "segment"\n'
    )
    bench = build(recipe)
    asked: list[str] = []
    store = bench.part("negatives.queue")
    plain = store.candidates
    store.candidates = lambda batch, ctx: asked.append(batch.level) or plain(batch, ctx)  # type: ignore[func-returns-value]
    bench.step()
    assert set(asked) == {"sentence"}


def test_both_directions(build: Build) -> None:
    texts, others = sentences(24), sentences(24, seed=1)

    def loss(columns: dict[str, list[str]], directions: str) -> float:
        recipe = CLS + f'[[loss]]\nuse = "infonce"\ndirections = "{directions}"\n'
        return float(build(recipe, *PLAIN, columns=columns).step().loss)

    there = {"text": texts, "positive": others}
    back = {"text": others, "positive": texts}
    one, other = loss(there, "one"), loss(back, "one")
    assert one != pytest.approx(other, rel=1e-5)
    assert loss(there, "both") == pytest.approx((one + other) / 2, rel=2e-6)
    recipe = CLS + '[[negatives]]\nuse = "watching"\n[[loss]]\nuse = "infonce"\n'
    sets = ("loss.infonce.in_batch=both", "loss.infonce.directions=both")
    bench = build(recipe, *sets)
    bench.step(0)
    (view, forward), (turned, backward) = bench.part("negatives.watching").seen
    assert (view, turned) == ("anchor", "positive")
    assert dict(forward.views) == {"in-batch": "positive", "anchors": "anchor"}
    assert dict(backward.views) == {"in-batch": "anchor", "anchors": "positive"}
    for negatives in (forward, backward):
        assert negatives.slot.tolist() == [0] * 16 and negatives.row.tolist() == [*range(8)] * 2


def test_equal_tokens_have_gradients_of_their_own(build: Build) -> None:
    bench = build(CLS + '[[loss]]\nuse = "infonce"\n')
    tokens = bench.assembly.online.tokenizer.content(["ba be"])
    doubled = tokens.take_tokens(torch.tensor([0, 0, 1]), torch.tensor([3]))
    values = torch.tensor([[1.0], [2.0], [3.0]])
    field = GradientField(token_keys(doubled), values)
    assert torch.equal(field.at(doubled), values)
    tripled = tokens.take_tokens(torch.tensor([0, 0, 0, 1]), torch.tensor([4]))
    assert field.at(tripled).flatten().tolist() == [1.0, 2.0, 1.0, 3.0]
    assert field.at(tokens).flatten().tolist() == [1.0, 3.0]


GRADED = CLS + '[[branch]]\nuse = "frozen"\n[[loss]]\nuse = "graded"\n'
COLUMNS = {
    "text": sentences(24),
    "positive": sentences(24)[::-1],
    "score": [f"{i / 24:.2f}" for i in range(24)],
    "topic": ["sport", "music", "art"] * 8,
}


def test_numbers_and_labels_of_the_batch(build: Build) -> None:
    bench = build(GRADED, columns=COLUMNS)
    rows = [3, 17, 4, 0, 21, 9, 8, 1]
    numbers = {"art": 0, "music": 1, "sport": 2}
    wanted = sum(numbers[COLUMNS["topic"][row]] for row in rows)
    assert float(bench.step(0, rows).parts["graded.topic"]) == wanted
    bench = build(GRADED, "model.dropout=0", columns=COLUMNS)
    value = float(bench.step(0, rows).loss)
    online = build(GRADED, "model.dropout=0", columns=COLUMNS).assembly.online
    anchors, others = (
        online.encode([COLUMNS[name][row] for row in rows], torch.device("cpu"))
        for name in ("text", "positive")
    )
    grades = torch.tensor([float(COLUMNS["score"][row]) for row in rows])
    cosines = torch.cosine_similarity(anchors, others)
    assert value == pytest.approx(float((cosines - grades).square().mean()), rel=1e-4)


def test_a_round_may_go_on_with_the_learning_rate(build: Build) -> None:
    bench = build(CLS + '[[loss]]\nuse = "infonce"\n')
    rows, precision = bench.loop.rows, bench.engine.passes.precision
    rates = []
    for kept, scheduled in ((True, 0), (True, 2), (False, 2)):
        current = TrainingRound(keep_schedule=kept, train={"max_steps": 2})
        loop = TrainingLoop(bench.assembly, current, rows, precision, scheduled=scheduled)
        loop.step()
        rates.append(loop.optimizer.adamw.param_groups[0]["lr"] / loop.options.lr)
    assert rates == pytest.approx([1, 1 - 2 / 3, 1]), "24 rows are three steps of the run"
