"""Results as JSON and as tables, and the difference of two that may be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cse_core.errors import CseError
from cse_evaluation.geometry import MOST_SENTENCES
from cse_evaluation.sts import Result

if TYPE_CHECKING:
    from rich.table import Table


def results_json(results: Sequence[Result]) -> dict[str, Any]:
    """Return ``{"results": {"stsb.test": {"spearman": …, "pairs": …, "setting": "all"}, …}}``."""
    return {"results": {result.name: result.to_json() for result in results}}


def results_table(results: Sequence[Result], title: str = "", subsets: bool = False) -> Table:
    """Return a table for the terminal.

    Args:
        results: What ``evaluate_sts`` returned.
        title: Shown above, such as the model's name.
        subsets: Also a row for each subset.
    """
    from rich.table import Table

    words = any(result.lexical for result in results)
    table = Table(title=title or None, caption=_caption(results), caption_justify="left")
    table.add_column("set", no_wrap=True)
    table.add_column("split")
    table.add_column("setting")
    for column in ("pairs", "Spearman", *(("TF-IDF", "Jaccard") if words else ())):
        table.add_column(column, justify="right")
    for column in ("alignment (pairs, above)", "uniformity (sentences)", "mean cosine"):
        table.add_column(column, justify="right")
    table.add_column("effective rank", justify="right")
    for result in results:
        if result.sets:
            table.add_section()
        table.add_row(*_cells(result, words), style="bold" if result.sets else None)
        if subsets:
            for name, score in result.subsets.items():
                cells = [f"  {name or '(no subset)'}", "", "", str(score.pairs)]
                table.add_row(*cells, _number(score.spearman), style="dim")
    return table


def difference(after: Result, before: Result) -> float:
    """Return how many points of Spearman x100 one result is above another.

    Raises:
        CseError: If they are not of the same set, setting, split and pairs, or one is undefined.
    """
    for what in ("name", "setting", "split", "sets", "pairs", "fingerprint"):
        one, other = getattr(after, what), getattr(before, what)
        if one != other:
            raise CseError(
                f"scores with a different {'set' if what in ('name', 'sets') else what} cannot be "
                f"compared: {_shown(one)} and {_shown(other)}",
                where=after.name,
                hint="evaluate both models on the same file in the same setting",
            )
    if after.spearman is None or before.spearman is None:
        raise CseError(
            "one of the two scores is undefined: all its cosines are equal", where=after.name
        )
    return after.spearman - before.spearman


def comparison_table(
    before: Sequence[Result], after: Sequence[Result], names: tuple[str, str] = ("before", "after")
) -> Table:
    """Return a table of two models' scores on the same sets.

    Raises:
        CseError: If the results are not of the same sets, settings and pairs.
    """
    from rich.table import Table

    if [result.name for result in before] != [result.name for result in after]:
        raise CseError(
            "the two models were scored on different sets: "
            f"{_shown([r.name for r in before])} and {_shown([r.name for r in after])}"
        )
    words = any(result.lexical for result in after)
    without = [replace(result, lexical=None) for result in before]
    shown = [f"{names[0]}, {_binary_line(result)}" for result in without if result.binary]
    shown += [f"{names[1]}, {_binary_line(result)}" for result in after if result.binary]
    caption = "\n".join([*_word_lines(after), *shown])
    table = Table(caption=caption or None, caption_justify="left")
    table.add_column("set", no_wrap=True)
    table.add_column("split")
    table.add_column("setting")
    for column in ("pairs", *names, "difference", *(("TF-IDF", "Jaccard") if words else ())):
        table.add_column(column, justify="right")
    for first, second in zip(before, after, strict=True):
        gain = f"{difference(second, first):+.2f}"
        cells = [second.name, second.split, second.setting, str(second.pairs)]
        cells += [_number(first.spearman), _number(second.spearman), gain]
        table.add_row(*cells, *(_word_cells(second) if words else ()))
    return table


def _cells(result: Result, words: bool) -> list[str]:
    cells = [result.name, result.split, result.setting, str(result.pairs)]
    cells.append(_number(result.spearman))
    if words:
        cells += _word_cells(result)
    geometry = result.geometry
    if geometry is None:
        return cells
    return [
        *cells,
        f"{_number(geometry.alignment, 3)} ({geometry.alignment_pairs}, {geometry.threshold:g})",
        f"{_number(geometry.uniformity, 3)} ({geometry.uniformity_sentences})",
        _number(geometry.mean_cosine, 3),
        _number(geometry.effective_rank, 1),
    ]


def _word_cells(result: Result) -> list[str]:
    if result.lexical is None:
        return ["", ""]
    return [_number(result.lexical.tfidf), _number(result.lexical.jaccard)]


def _caption(results: Sequence[Result]) -> str:
    lines = [
        "Spearman x100 of cosines; setting all: the pairs of all subsets of a set ranked together."
    ]
    lines += _word_lines(results)
    lines.append(
        "Alignment: mean squared distance of pairs scored above the threshold; uniformity: "
        "log mean exp(-2 d^2) over all pairs of the distinct sentences; unit vectors."
    )
    sampled = [
        result.geometry
        for result in results
        if result.geometry and result.geometry.uniformity_sentences < result.geometry.sentences
    ]
    if sampled:
        lines.append(f"Of more than {MOST_SENTENCES} sentences, uniformity is of a fixed sample.")
    lines += [_binary_line(result) for result in results if result.binary]
    if any(result.spearman is None for result in results):
        lines.append("undefined: all cosines are equal, the model has collapsed.")
    return "\n".join(lines)


def _word_lines(results: Sequence[Result]) -> list[str]:
    """Say what TF-IDF and Jaccard counted."""
    lexical = [result.lexical for result in results if result.lexical]
    if not lexical:
        return []
    sources = {score.idf for score in lexical}
    source = sources.pop() if len(sources) == 1 else "the sentences of each file"
    units = " or ".join(sorted({score.units for score in lexical}))
    return [f"TF-IDF and Jaccard: {units}, lower-cased; idf from {source}."]


def _binary_line(result: Result) -> str:
    """Return what a set of pairs labelled 0 and 1 is better described by."""
    binary, words = result.binary, result.lexical
    if binary is None:
        return ""
    scores = [("cosine", binary)]
    if words and words.tfidf_binary and words.jaccard_binary:
        scores += [("TF-IDF", words.tfidf_binary), ("Jaccard", words.jaccard_binary)]
    shown = "; ".join(
        f"{name}: average precision {each.average_precision:.2f}, ROC AUC {each.roc_auc:.2f}"
        for name, each in scores
    )
    return (
        f"{result.name}: labels 0 and 1, {binary.positives} of {result.pairs} are 1 (ties keep "
        f"Spearman below 100). {shown}."
    )


def _number(value: float | None, places: int = 2) -> str:
    return "undefined" if value is None else f"{value:.{places}f}"


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
