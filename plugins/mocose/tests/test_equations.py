"""The perturbation, the loss and the distance in loops."""

import math
from collections.abc import Iterator

import torch
from cse_mocose.distance import distance, mean_age
from cse_testkit import make_batch, make_context, make_part
from torch import Tensor

from cse_core.types import View
from cse_engine.step import negatives as core
from cse_engine.step.input_gradients import GradientCapture, look_up
from tests.fixtures.equations import equation
from tests.fixtures.token_rows import token_rows


@equation("MoCoSE", "Eq. 1, with the gradient of the objective", "aug fgsm", within=0)
def test_fgsm() -> Iterator[tuple[Tensor, Tensor]]:
    """x + epsilon * sign(gradient), the gradient by a difference of the objective in loops."""
    draws = torch.Generator().manual_seed(0)
    rows, entries, places = 3, 4, [0, 0, 1, 1, 1, 2, 2]
    x, keys = (torch.randn(n, entries, dtype=torch.float64, generator=draws) for n in (7, rows))
    view, tokens = (
        View("anchor", "anchor", "online"),
        token_rows(*map(places.count, range(rows)), ends=False),
    )
    capture = GradientCapture(["word_embeddings"])
    words = capture.keep("word_embeddings", x, [(view, tokens, 0, len(x))])
    pooled = torch.stack([words[[p == row for p in places]].mean(0).tanh() for row in range(rows)])
    batch = make_batch(vectors={"anchor": pooled, "positive": keys})
    loss = make_part("loss", "infonce", temperature=0.5)
    negatives = core.negatives_for_loss(batch, loss.options, [])
    value = loss(batch, batch.targets["positive"], negatives, make_context(batch)).value
    capture.backward([value], [None], inputs_only=True)
    fields = capture.fields(["anchor"], {"word_embeddings": entries}, x.device)
    gradient = look_up(fields, "word_embeddings", view, tokens)

    def objective(token: int, entry: int, change: float) -> float:
        total = 0.0
        for row in range(rows):
            members = [n for n, place in enumerate(places) if place == row]
            query = [
                math.tanh(sum(
                    float(x[n, e]) + change * ((n, e) == (token, entry)) for n in members
                ) / len(members))
                for e in range(entries)
            ]  # fmt: skip
            masses = []
            for key in keys.tolist():
                dot = sum(a * b for a, b in zip(query, key, strict=True))
                masses.append(math.exp(dot / math.hypot(*query) / math.hypot(*key) / 0.5))
            total -= math.log(masses[row] / sum(masses))
        return total / rows

    for epsilon in (5e-9, 0.1):
        part = make_part("aug", "fgsm", epsilon=epsilon, relative=False)
        found = part(x, tokens, view, make_context(gradient=gradient))
        wanted = x.clone()
        for token in range(len(places)):
            for entry in range(entries):
                slope = objective(token, entry, 1e-5) - objective(token, entry, -1e-5)
                wanted[token, entry] += epsilon * ((slope > 0) - (slope < 0))
        yield found, wanted


@equation("MoCoSE", "Eq. 3", "loss.infonce of recipe mocose")
def test_loss() -> Iterator[tuple[Tensor, float]]:
    """Negatives of the queue alone, as printed, and of the batch's keys too, as in the code."""
    store = make_part("negatives", "queue", size=6, first_fill=6)
    first = make_batch(seed=1)
    store.candidates(first, make_context(first))
    plain = make_batch(rows=range(50, 54))
    stored = {store.name: store.candidates(plain, make_context(plain))}
    batch = make_batch(rows=range(50, 54), stored=stored)
    keys = batch.targets["positive"].vectors[:, 0]
    for choice in ("stored", "all"):
        loss = make_part("loss", "infonce", temperature=0.05, negatives=choice)
        negatives = core.negatives_for_loss(batch, loss.options, [store.name])
        total = 0.0
        for i, query in enumerate(batch.anchors):
            others = [key for j, key in enumerate(keys) if j != i and choice == "all"]
            masses = [
                math.exp(float(query @ key / (query.norm() * key.norm())) / 0.05)
                for key in (keys[i], *others, *stored[store.name].vectors)
            ]
            total -= math.log(masses[0] / sum(masses))
        found = loss(batch, batch.targets["positive"], negatives, make_context(batch)).value
        yield found, total / 4


@equation(
    "MoCoSE", "Eqs. 5 to 9 (A.11), mean age of a moving average's weights", "study appendix-A.11"
)
def test_the_mean_age() -> Iterator[tuple[float, float]]:
    """An average that is updated one weight at a time, and the share of each of them in it."""
    for eta, terms in ((0.5, 60), (0.85, 300), (0.95, 40)):
        shares: list[float] = []
        for _ in range(terms):
            shares = [share * eta for share in shares] + [1 - eta]
        ages = range(terms, 0, -1)
        wanted = sum(share * age for share, age in zip(shares, ages, strict=True))
        yield mean_age({"eta": eta, "terms": terms})["sum"], wanted


@equation("MoCoSE", "Eq. 4, the traceable distance 1 / (1 - eta) + K / B", "negatives queue")
def test_the_distance() -> Iterator[tuple[float, float]]:
    """The steps until a key leaves a full queue, and the mean age of the weights behind it."""
    for eta, size, batch in ((0.85, 512, 64), (0.5, 256, 32), (0.9, 512, 32)):
        steps, queue = 0, ["old"] * batch + ["other"] * (size - batch)
        while "old" in queue:
            queue, steps = (["other"] * batch + queue)[:size], steps + 1
        lag = sum((1 - eta) * eta**age * (age + 1) for age in range(2000))
        yield distance(eta, size, batch), steps + lag
