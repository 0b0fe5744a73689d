"""``cse iscse neighbours``: what the buffer of a run holds near its sentences (IS-CSE, Table 9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cse_cli.api import echo, echo_err, installed
from cse_core.errors import CseError

if TYPE_CHECKING:
    from torch import Tensor

    from cse import StoredRun
    from cse_core.memory import Held


@dataclass(frozen=True)
class Shown:
    """A sentence of the buffer and what is near it.

    Attributes:
        near: Cosine and text of each neighbour, the nearest first.
    """

    text: str
    near: list[tuple[float, str]]


def neighbours_of_run(
    run: StoredRun,
    *,
    part: str | None = None,
    step: int | None = None,
    find: str | None = None,
    sentences: int = 5,
    k: int = 3,
) -> tuple[str, list[Shown]]:
    """Return sentences of the buffer at a checkpoint with the nearest others, as texts.

    The buffer of a checkpoint is the one that the checkpoint's step searched, and the newest of its
    vectors are those of that step's batch, so with ``exclude = "rank"`` these are the neighbours
    that the step smoothed over; what ``row`` and ``batch`` leave out is shown here.
    Of ``kmeans-smoothing`` only sentences of the same cluster count as near.

    Args:
        run: The run.
        part: Name of the miner; by default the run's first that has a buffer.
        step: Of the checkpoint; by default the last.
        find: A part of the text of the sentences wanted; by default the newest are taken.
        sentences: How many.
        k: Neighbours per sentence.

    Returns:
        Where the vectors are from, in words, and the sentences.

    Raises:
        CseError: If the checkpoint, buffer or sentence is missing, or the data has changed.
    """
    from cse_core.memory import Held

    name = _miner(run, part)
    state = run.state(f"positives.{name}", step)
    if "vectors" not in state:
        raise CseError("the buffer is empty", where=f"positives.{name}", value=str(run.path))
    buffer = Held(state["vectors"], state["row"], state["age"])
    shown = _shown(buffer, _texts(run, buffer), state.get("centroids"), find, sentences, k)
    at = run.checkpoints[-1][1] if step is None else step
    return f"positives.{name} at step {at}: {len(buffer)} vectors in the buffer", shown


def of_point(point: Mapping[str, Any]) -> dict[str, Any]:
    """List the neighbours that smoothed a run's sentences: study ``iscse/table-9``.

    Args:
        point: ``run``, its folder; ``sentences`` and ``k``, how many, and ``find``, a part of
            their texts, as of the command.

    Raises:
        CseError: As of ``neighbours_of_run``.
    """
    from cse import open_run

    wanted = {name: point[name] for name in ("find", "sentences", "k") if name in point}
    said, shown = neighbours_of_run(open_run(point["run"]), **wanted)
    cosines = [cosine for item in shown for cosine, _ in item.near]
    return {
        "buffer": said,
        "sentences": [
            {"text": item.text, "neighbours": [[cosine, text] for cosine, text in item.near]}
            for item in shown
        ],
        "mean cosine": sum(cosines) / max(len(cosines), 1),
    }


def _miner(run: StoredRun, part: str | None) -> str:
    from cse_iscse.options import SmoothingOptions

    names = [
        miner.name
        for miner in run.composition.of("positives")
        if isinstance(miner.options, SmoothingOptions)
    ]
    if not names:
        raise CseError("this run has no miner with a buffer", where="RUN")
    if part is not None and part not in names:
        hint = f"this run has {', '.join(names)}"
        raise CseError("has no buffer in this run", where="--part", value=part, hint=hint)
    return part or names[0]


def _texts(run: StoredRun, buffer: Held) -> list[str]:
    """Return the texts of the rows in the buffer."""
    corpus, rows = run.corpus, buffer.row.tolist()
    known = [row for row in rows if row < len(corpus)]
    texts = iter(corpus.column("text").take(known))
    return [next(texts) if row < len(corpus) else "(a text of a round)" for row in rows]


def _shown(
    buffer: Held,
    texts: list[str],
    centroids: Tensor | None,
    find: str | None,
    sentences: int,
    k: int,
) -> list[Shown]:
    import torch

    wanted = (find or "").lower()
    places = [place for place in reversed(range(len(texts))) if wanted in texts[place].lower()]
    if not places:
        raise CseError("no sentence in the buffer has this text", where="--find", value=find)
    chosen = torch.tensor(places[:sentences])
    similarity = buffer.vectors[chosen] @ buffer.vectors.T
    similarity[torch.arange(len(chosen)), chosen] = -torch.inf
    if centroids is not None:
        cluster = (buffer.vectors @ centroids.T).argmax(dim=1)
        similarity[cluster[chosen].unsqueeze(1) != cluster.unsqueeze(0)] = -torch.inf
    values, nearest = similarity.topk(min(k, len(texts)), dim=1)
    return [
        Shown(
            texts[place],
            [
                (cosine, texts[other])
                for cosine, other in zip(cosines, others, strict=True)
                if cosine > -torch.inf
            ],
        )
        for place, cosines, others in zip(
            chosen.tolist(), values.tolist(), nearest.tolist(), strict=True
        )
    ]


def neighbours(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder.")],
    part: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name of the miner (default: the first with a buffer)."),
    ] = None,
    step: Annotated[
        int | None, typer.Option(metavar="N", help="Step of the checkpoint (default: the last).")
    ] = None,
    find: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Sentences that contain this text; by default the newest, those of the last "
            "batch.",
        ),
    ] = None,
    sentences: Annotated[int, typer.Option(metavar="N", min=1, help="Number of sentences.")] = 5,
    k: Annotated[int, typer.Option("-k", metavar="N", min=1, help="Neighbours per sentence.")] = 3,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """Show what the buffer of a run holds near its sentences."""
    from cse import open_run

    said, shown = neighbours_of_run(
        open_run(run, plugins=installed(context)),
        part=part,
        step=step,
        find=find,
        sentences=sentences,
        k=k,
    )
    echo_err(said)
    for item in shown:
        if json:
            near = [{"cosine": round(cosine, 4), "text": text} for cosine, text in item.near]
            echo(dumps({"text": item.text, "neighbours": near}, ensure_ascii=False))
        else:
            echo(item.text)
            for cosine, text in item.near:
                echo(f"  {cosine:.3f}  {text}")
