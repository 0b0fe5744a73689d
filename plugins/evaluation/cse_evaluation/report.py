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


def results_tables(
    results: Sequence[Result], title: str = "", subsets: bool = False, width: int = 1000
) -> list[Table]:
    """Return the tables of one model for a terminal: one, or two where one is too wide.

    Args:
        results: What ``evaluate_sts`` returned.
        title: Shown above, such as the model's name.
        subsets: Also a row for each subset.
        width: Columns of the terminal.
    """
    words = any(result.lexical for result in results)
    scores = ["pairs", "Spearman", *(("TF-IDF", "Jaccard") if words else ())]
    names = ["alignment (pairs, above)", "uniformity (sentences)", "mean cosine", "effective rank"]
    whole = _table([*scores, *names], title=title, caption=_caption(results))
    first = _table(scores, title=title)
    for result in results:
        style = "bold" if result.sets else None
        if result.sets:
            whole.add_section()
            first.add_section()
        cells = [*_heads(result), _number(result.spearman), *(_word_cells(result) if words else ())]
        whole.add_row(*cells, *_geometry_cells(result), style=style)
        first.add_row(*cells, style=style)
        if subsets:
            for name, score in result.subsets.items():
                cells = [f"  {name or '(no subset)'}", "", "", str(score.pairs)]
                whole.add_row(*cells, _number(score.spearman), style="dim")
                first.add_row(*cells, _number(score.spearman), style="dim")
    if _width(whole) <= width:
        return [whole]
    second = _table([name.replace(" ", "\n", 1) for name in names], ("set",), _caption(results))
    for result in results:
        if result.geometry is not None:
            second.add_row(result.name, *_geometry_cells(result))
    return [first, second]


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
    before: Sequence[Result],
    after: Sequence[Result],
    names: tuple[str, str] = ("before", "after"),
    width: int = 1000,
) -> Table:
    """Return a table of two models' scores on the same sets.

    Args:
        before: Results of the first model.
        after: Results of the second model on the same sets.
        names: Of the models.
        width: Columns of the terminal; where the table is wider, a split or setting that all sets
            share stands below it.

    Raises:
        CseError: If the results are not of the same sets, settings and pairs.
    """
    if [result.name for result in before] != [result.name for result in after]:
        raise CseError(
            "the two models were scored on different sets: "
            f"{_shown([r.name for r in before])} and {_shown([r.name for r in after])}"
        )
    words = any(result.lexical for result in after)
    without = [replace(result, lexical=None) for result in before]
    lines = _word_lines(after)
    lines += [f"{names[0]}, {_binary_line(result)}" for result in without if result.binary]
    lines += [f"{names[1]}, {_binary_line(result)}" for result in after if result.binary]
    rows = []
    for first, second in zip(before, after, strict=True):
        gain = f"{difference(second, first):+.2f}"
        cells = [*_heads(second), _number(first.spearman), _number(second.spearman), gain]
        rows.append([*cells, *(_word_cells(second) if words else ())])
    shared = [n for n in (1, 2) if len({row[n] for row in rows}) == 1]
    attempts: list[tuple[list[int], str]] = [([], "difference"), (shared, "difference")]
    for left_out, gain in (*attempts, (shared, "diff")):
        said = [f"{_HEADS[n]} {rows[0][n]}" for n in left_out if rows[0][n]]
        heads = [name for n, name in enumerate(_HEADS) if n not in left_out]
        caption = "\n".join([*(["all sets: " + ", ".join(said)] if said else []), *lines])
        numbers = ["pairs", *names, gain, *(("TF-IDF", "Jaccard") if words else ())]
        table = _table(numbers, heads, caption)
        for row in rows:
            table.add_row(*[cell for n, cell in enumerate(row) if n not in left_out])
        if _width(table) <= width:
            break
    return table


_HEADS = ("set", "split", "setting")


def _table(
    numbers: Sequence[str], heads: Sequence[str] = _HEADS, caption: str = "", title: str = ""
) -> Table:
    """Return an empty table; what does not fit is folded, and no digit is lost."""
    from rich.table import Table

    table = Table(title=title or None, caption=caption or None, caption_justify="left")
    for name in heads:
        table.add_column(name, no_wrap=name == "set", overflow="fold")
    for name in numbers:
        table.add_column(name, justify="right", overflow="fold")
    return table


def _width(table: Table) -> int:
    """Return how many columns of a terminal a table takes where there is room."""
    from rich.console import Console

    console = Console(width=1000)
    return console.measure(table).maximum


def _heads(result: Result) -> list[str]:
    return [result.name, result.split, result.setting, str(result.pairs)]


def _geometry_cells(result: Result) -> list[str]:
    geometry = result.geometry
    if geometry is None:
        return []
    return [
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
