"""Batches, contexts and parts for unit tests, with fixed vectors and no encoder."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from cse import Session
from cse_cli.api import load_texts
from cse_core.capabilities import Role
from cse_core.functional import derive_seed
from cse_core.loading import load_factory
from cse_core.parts import Setup, TextModel
from cse_core.protocols import Tokenizer
from cse_core.records import Kind
from cse_core.types import (
    Batch,
    CorpusKeys,
    Embeddings,
    Positives,
    StepContext,
    offsets_of,
    positions_of,
)
from cse_testkit.promises import installed_registry
from cse_testkit.runs import Rig, compose
from cse_testkit.tiny import POSITIONS, TEACHER, shared_encoder

CPU = torch.device("cpu")


def seeded(*counters: int | str, device: torch.device | str = CPU) -> torch.Generator:
    """Return draws by what they are for, the same at each call."""
    return torch.Generator(device).manual_seed(derive_seed(*counters))


def make_batch(
    vectors: Mapping[str, Tensor] | None = None,
    *,
    sentences: int = 4,
    segments: int = 1,
    dimension: int = 8,
    views: Mapping[str, Role] | None = None,
    groups: Mapping[str, int] | None = None,
    level: str = "sentence",
    levels: Sequence[str] = (),
    several: Sequence[str] = (),
    rows: Sequence[int] | None = None,
    documents: Sequence[int] | None = None,
    same_text: Mapping[int, int] | None = None,
    dtype: torch.dtype = torch.float64,
    seed: int = 0,
    **changes: Any,
) -> Batch:
    """Make a batch at one level, of given or random vectors.

    Args:
        vectors: ``[A, D]`` by view, ``anchor`` among them; A is sentences times segments. Views
            that are not given are drawn.
        sentences: B, where no vectors are given.
        segments: Rows of each sentence; slots count them.
        dimension: D, where no vectors are given.
        views: Role of each view beside the anchor; by default ``positive``. Those of role
            ``positive`` are groups of targets too.
        groups: P of further groups of positives by name, drawn, with one weight of zero where P is
            above 1.
        level: Level of the anchors.
        levels: Further levels that the views have, one row a sentence (``input``).
        several: Further levels with two and three vectors of a sentence in turn (``token``).
        rows: ``[B]`` corpus rows; by default 0 to B-1.
        documents: Document of each corpus row; by default none.
        same_text: Corpus rows with the text of an earlier one.
        dtype: Of drawn vectors.
        seed: Of the draws.
        changes: Other fields of ``cse_core.types.Batch``, such as ``stored``.
    """
    given = dict(vectors or {})
    if given:
        if "anchor" not in given:
            raise ValueError("the vectors of the view anchor are missing")
        count, dimension = given["anchor"].shape
        sentences = count // segments
        dtype = given["anchor"].dtype
    roles: dict[str, Role] = {"anchor": "anchor", **(views or {"positive": "positive"})}
    count = sentences * segments
    owner = torch.arange(count) // segments
    slot = torch.arange(count) % segments

    def draw(name: str, *shape: int) -> Tensor:
        return torch.randn(*shape, dtype=dtype, generator=seeded(seed, name))

    def embeddings(values: Tensor, of_owner: Tensor, of_slot: Tensor) -> Embeddings:
        return Embeddings(values, of_owner, of_slot, torch.full((len(values),), 5))

    made: dict[str, dict[str, Embeddings]] = {}
    for name in roles:
        values = given[name] if name in given else draw(name, count, dimension)
        made[name] = {level: embeddings(values, owner, slot)}
        for other in levels:
            if other != level:
                of_sentence = draw(f"{name} {other}", sentences, dimension)
                made[name][other] = embeddings(
                    of_sentence, torch.arange(sentences), torch.zeros(sentences, dtype=torch.long)
                )
        counts = 2 + torch.arange(sentences) % 2
        of = torch.arange(sentences).repeat_interleave(counts)
        for other in several:
            values = draw(f"{name} {other}", len(of), dimension)
            made[name][other] = embeddings(values, of, positions_of(offsets_of(counts)))
    targets = {
        name: Positives(made[name][level].vectors.unsqueeze(1))
        for name, role in roles.items()
        if role == "positive"
    }
    for name, many in (groups or {}).items():
        weights = torch.ones(count, many, dtype=dtype)
        weights[0, 1:] = 0
        targets[name] = Positives(draw(name, count, many, dimension), weights)
    rows_of = torch.arange(sentences) if rows is None else torch.tensor(list(rows))
    size = max(int(rows_of.amax()) + 1, 64)
    keys = torch.full((size,), -1) if documents is None else torch.tensor(list(documents))
    text_ids = torch.arange(max(size, len(keys)))
    for later, earlier in (same_text or {}).items():
        text_ids[later] = earlier
    batch = Batch(
        rows=rows_of,
        level=level,
        anchors=made["anchor"][level].vectors,
        owner=owner,
        slot=slot,
        targets=targets,
        stored={},
        views=made,
        roles=roles,
        corpus=CorpusKeys(keys, text_ids),
    )
    return dataclasses.replace(batch, **changes)


def make_context(
    batch: Batch | None = None,
    *,
    step: int = 0,
    seed: int = 0,
    gradient: Tensor | None = None,
    texts: Mapping[str, Sequence[str]] | None = None,
    values: Mapping[str, Sequence[float]] | None = None,
    log: dict[str, Tensor | float] | None = None,
    **changes: Any,
) -> StepContext:
    """Make the context of a step.

    Args:
        batch: The batch; its views are what ``ctx.vectors`` returns, for every branch.
        step: Steps done.
        seed: Of ``ctx.generator``.
        gradient: What ``ctx.gradient`` returns.
        texts: Texts of the batch by column.
        values: Numbers of the batch by column.
        log: Receives what is logged.
        changes: Other attributes and methods of ``cse_core.types.StepContext``.
    """

    def of_batch(view: str, branch: str | None) -> Mapping[str, Embeddings]:
        if batch is None or view not in batch.views:
            raise KeyError(f"no view {view}")
        return {level: group.detach() for level, group in batch.views[view].items()}

    def draws(
        name: str, *, shared: bool = True, device: torch.device | str = "cpu"
    ) -> torch.Generator:
        who = "shared" if shared else "rank 0"
        return seeded(seed, 0, step, "part", name, who, device=device)

    logged: dict[str, Tensor | float] = {} if log is None else log
    plain = StepContext(
        step=step,
        total_steps=10,
        epoch=0,
        round=0,
        rows=torch.arange(4) if batch is None else batch.rows,
        device=CPU,
    )
    fake: dict[str, Any] = dict(
        generator=draws,
        uniform=lambda name, tokens: torch.rand(len(tokens.ids), generator=draws(name)),
        vectors=of_batch,
        beside=lambda view, rows: {"slot": rows.slot},
        gradient=lambda view, tokens: gradient,
        texts=lambda column: list((texts or {})[column]),
        values=lambda column: torch.as_tensor((values or {})[column]),
        tokens=lambda column: tiny_tokenizer().content(list((texts or {})[column])),
        negatives=lambda *given: _context_of_a_run().negatives(*given),
        log=logged.__setitem__,
    )
    return plain.replace(**{**fake, **changes})


@cache
def _context_of_a_run() -> StepContext:
    """Return the context of a step of a tiny run."""
    seen: list[StepContext] = []
    session = Rig(compose()).session.prepare()
    session.watch(lambda part, method, given, came: seen.append(given[-1]))
    session.step()
    return seen[-1]


def _tiny_run(name: str | None, **chosen: Any) -> Session:
    """Return a run of an encoder's folder, of a wider one for another name, of the tiny one."""
    folder = shared_encoder() if name is None else Path(name)
    folder = folder if folder.is_dir() else shared_encoder(hidden=TEACHER)
    return Rig(compose(encoder=folder, **chosen)).session


@cache
def tiny_tokenizer() -> Tokenizer:
    """Return the tokenizer of the tiny encoder."""
    with torch.random.fork_rng(devices=[]):
        return _tiny_run(None).tokenizer()


def _load_model(model: str | None, pooling: str | None = None, option: str = "model") -> TextModel:
    def encode(texts: Sequence[str], longest: int | None = None) -> Tensor:
        most = f"model.max_length={longest or POSITIONS}"
        run = _tiny_run(model, kinds={"pool": [pooling or "mean"]}, sets=[most])
        return torch.from_numpy(run.encode(texts))

    session = _tiny_run(model)
    return TextModel(session.encoder(), session.tokenizer(), encode)


def _no_masked_lm(model: str | None = None, option: str = "model") -> Any:
    raise RuntimeError("asks for a masked language model, which a run alone has: test it with Rig")


def make_setup(name: str = "part", *, dimension: int = 8, seed: int = 0, **changes: Any) -> Setup:
    """Make a setup without an encoder of the run; second encoders are tiny ones.

    Args:
        name: Name of the instance.
        dimension: Of vectors, hidden states and word embeddings.
        seed: Of the draws.
        changes: Other fields of ``cse_core.parts.Setup``.
    """
    setup = Setup(
        name=name,
        dimension=dimension,
        hidden_size=dimension,
        embedding_size=dimension,
        layers=2,
        tokenizer=tiny_tokenizer(),
        encoder=None,
        heads={},
        corpus=None,
        total_steps=10,
        seed=seed,
        device=CPU,
        generator=lambda what: seeded(seed, "setup", name, what),
        load_model=_load_model,
        load_texts=load_texts,
        load_masked_lm=_no_masked_lm,
    )
    return dataclasses.replace(setup, **changes)


def make_part(kind: Kind, name: str, *, dimension: int = 8, **options: Any) -> Any:
    """Make an installed part without an encoder of the run, in float64, for unit tests.

    Args:
        kind: Its kind.
        name: Its name.
        dimension: Of the vectors that reach it.
        options: Its options.
    """
    spec = installed_registry().find(kind, name).spec
    typed = spec.options_class(**options)
    setup = make_setup(name, dimension=dimension)
    part: Any = load_factory(spec.factory)(typed, setup)
    part.name, part.path = name, f"{kind}.{name}"
    if isinstance(part, nn.Module):
        part.double()
    return part
