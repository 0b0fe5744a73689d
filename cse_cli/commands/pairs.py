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

    folder = RunFolder(run)
    if not folder.recipe.is_file():
        hint = "name the folder that `cse train` made, such as runs/NAME"
        what = "is not a run: it has no run.toml"
        raise CseError(what, where="RUN", value=str(run), hint=hint)
    numbers = sorted(int(each.name) for each in (run / "rounds").glob("[0-9]*"))
    if not numbers:
        hint = "its miners work inside the step, or it has no miner"
        raise CseError("has no mined pairs", where="RUN", value=str(run), hint=hint)
    corpus = training_corpus(resolve(registry, recipe=folder.recipe), registry)
    said: list[dict[str, Any]] = []
    for number in numbers:
        pairs = read_round(folder.round(number), number).pairs
        if document is not None:
            said.append({"round": number, **_clusters(corpus, pairs, document)})
            continue
        shown = [pairs[name][:rows] for name in ("text", "positive")]
        texts = [
            each if isinstance(each, list) else corpus.column("text").take(each) for each in shown
        ]
        examples = list(zip(*texts, strict=True))
        said.append({"round": number, "pairs": len(pairs["text"]), "examples": examples})
    return said


def _clusters(corpus: Corpus, pairs: Pairs, document: str) -> dict[str, Any]:
    """Return the document's components of the round's pairs, and its sentences in none.

    Raises:
        CseError: If the data has no such document, or the round pairs texts that are no rows.
    """
    import numpy as np
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    names = corpus.column("document")
    own = [row for row, name in enumerate(names) if name == document]
    if not own:
        hint = did_you_mean(document, list(dict.fromkeys(names))[:1000])
        raise CseError("the data has no such document", where="--document", value=document,
                       hint=hint)  # fmt: skip
    first, second = pairs["text"], pairs["positive"]
    if not (isinstance(first, np.ndarray) and isinstance(second, np.ndarray)):
        what = "this run pairs texts that its miner made, not sentences of a document"
        raise CseError(what, where="--document", hint="leave it out to see the first pairs")
    inside = np.isin(first, own) & np.isin(second, own)
    # A capped document lacks pairs that would connect its clusters: the round names them.
    marks = np.asarray(pairs.get("cluster", first))
    ends = np.concatenate([[first[inside], second[inside]], [first[inside], marks[inside]]], axis=1)
    graph = coo_array((np.ones(ends.shape[1]), tuple(ends)), shape=(len(corpus), len(corpus)))
    _, label = connected_components(graph, directed=False)
    groups: dict[int, list[str]] = {}
    for row, text in zip(own, corpus.column("text").take(own), strict=True):
        groups.setdefault(int(label[row]), []).append(text)
    return {
        "pairs": int(inside.sum()),
        "clusters": [each for each in groups.values() if len(each) > 1],
        "unpaired": [each[0] for each in groups.values() if len(each) == 1],
    }
