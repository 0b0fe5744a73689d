"""``cse data show-pairs``: what a run's miners paired, round by round."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cse_cli.plugins.installed import installed
from cse_cli.terminal.console import echo, say_json
from cse_core.errors import CseError, did_you_mean

if TYPE_CHECKING:
    from cse_core.data import Corpus
    from cse_core.registry.registry import Registry
    from cse_core.tokenization.training_rows import Pairs


def show_pairs(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run whose miner works in rounds.")],
    document: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="Show this document's clusters: sentences that pairs connect."
        ),
    ] = None,
    rows: Annotated[
        int, typer.Option(metavar="N", min=1, help="Pairs to show per round, without --document.")
    ] = 5,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the pairs of a run's rounds, or one document's clusters round by round."""
    said = rounds_of(run, installed(context).registry, document, rows)
    if json:
        say_json({"run": str(run), "document": document, "rounds": said})
        return
    for each in said:
        echo(f"round {each['round']}: {each['pairs']:,} pairs")
        for text, positive in each.get("examples", []):
            echo(f"  {text}\n    {positive}")
        for place, cluster in enumerate(each.get("clusters", []), 1):
            echo(f"  cluster {place}")
            for text in cluster:
                echo(f"    {text}")
        if each.get("unpaired"):
            echo("  in no pair")
            for text in each["unpaired"]:
                echo(f"    {text}")


def rounds_of(
    run: Path, registry: Registry, document: str | None = None, rows: int = 5
) -> list[dict[str, Any]]:
    """Return what the miners of a run paired in each round, as ``--json`` shows it.

    Args:
        run: The run's folder.
        registry: The installed parts.
        document: Only this document, as clusters; None for the first pairs of the round.
        rows: How many pairs of a round, without a document.

    Raises:
        CseError: If it is not a run, has no pairs, or its data no such document.
    """
    from cse_core.recipes.compose import resolve
    from cse_core.training.rounds import read_round
    from cse_core.training.run import training_corpus
    from cse_core.training.run_folder import RunFolder

    if not (run / "run.toml").is_file():
        raise CseError(
            "is not a run: it has no run.toml",
            where="RUN",
            value=str(run),
            hint="name the folder that `cse train` made, such as runs/NAME",
        )
    folder = RunFolder(run)
    numbers = sorted(int(each.name) for each in (run / "rounds").glob("[0-9]*"))
    if not numbers:
        raise CseError(
            "has no mined pairs",
            where="RUN",
            value=str(run),
            hint="its miners work inside the step, or it has no miner",
        )
    corpus = training_corpus(resolve(registry, recipe=folder.recipe), registry)
    own = None if document is None else _rows_of(corpus, document)
    said: list[dict[str, Any]] = []
    for number in numbers:
        pairs = read_round(folder.round(number), number).pairs
        if own is None:
            said.append({"round": number, **_first_pairs(corpus, pairs, rows)})
        else:
            said.append({"round": number, **_clusters(corpus, pairs, own)})
    return said


def _rows_of(corpus: Corpus, document: str) -> list[int]:
    names = corpus.column("document")
    found = [row for row, name in enumerate(names) if name == document]
    if not found:
        raise CseError(
            "the data has no such document",
            where="--document",
            value=document,
            hint=did_you_mean(document, list(dict.fromkeys(names))[:1000]),
        )
    return found


def _first_pairs(corpus: Corpus, pairs: Pairs, count: int) -> dict[str, Any]:
    shown = [_texts(corpus, pairs[name][:count]) for name in ("text", "positive")]
    return {"pairs": len(pairs["text"]), "examples": list(zip(*shown, strict=True))}


def _texts(corpus: Corpus, values: Any) -> list[str]:
    return values if isinstance(values, list) else corpus.column("text").take(values)


def _clusters(corpus: Corpus, pairs: Pairs, own: list[int]) -> dict[str, Any]:
    """Return the document's components of the round's pairs, and its sentences in none."""
    import numpy as np
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    first, second = pairs["text"], pairs["positive"]
    if not (isinstance(first, np.ndarray) and isinstance(second, np.ndarray)):
        return _text_pairs(corpus, pairs, own)
    inside = np.isin(first, own) & np.isin(second, own)
    known = np.sort(np.asarray(own))
    one, two = (np.searchsorted(known, column[inside]) for column in (first, second))
    sources, targets = [one], [two]
    marks = pairs.get("cluster")
    if isinstance(marks, np.ndarray) and bool(np.isin(marks[inside], known).all()):
        # A capped document lacks pairs that would connect its clusters: the round names them.
        sources.append(one)
        targets.append(np.searchsorted(known, marks[inside]))
    ends = (np.concatenate(sources), np.concatenate(targets))
    graph = coo_array((np.ones(len(ends[0])), ends), shape=(len(own), len(own)))
    _, label = connected_components(graph, directed=False)
    texts = corpus.column("text").take(own)
    groups: dict[int, list[str]] = {}
    for text, number in zip(texts, label.tolist(), strict=True):
        groups.setdefault(number, []).append(text)
    return {
        "pairs": len(one),
        "clusters": [each for each in groups.values() if len(each) > 1],
        "unpaired": [each[0] for each in groups.values() if len(each) == 1],
    }


def _text_pairs(corpus: Corpus, pairs: Pairs, own: list[int]) -> dict[str, Any]:
    """Return the document's pairs of a round that brings texts of its own."""
    texts = [list(_texts(corpus, pairs[name])) for name in ("text", "positive")]
    keys: Any = pairs.get("document")
    if keys is None:
        return {"pairs": 0, "examples": []}
    number = None if corpus.documents is None else int(corpus.documents[own[0]])
    chosen = [i for i, key in enumerate(keys) if key == number]
    return {"pairs": len(chosen), "examples": [(texts[0][i], texts[1][i]) for i in chosen]}
