"""What ``cse bench`` prints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse_cli.console import plain_table, say, say_table

if TYPE_CHECKING:
    from cse_bench.memory import Peak
    from cse_bench.report import BenchReport, MeasuredPrecision, Spread


def show_report(report: BenchReport) -> None:
    """Print what was measured on stdout."""
    from cse_bench.where import CATEGORIES

    composition, measured = report.composition, report.precisions
    say(f"machine: {_machine(report)}")
    say(
        f"trained: recipe {composition.recipe or 'default'}, model {composition.model.name}, "
        f"{report.rows:,} rows of {', '.join(composition.data.path)}, batches of "
        f"{report.batch_size}, {report.tokens:,.0f} real tokens a step"
    )
    table = plain_table("", ("", *(each.name for each in measured)))
    for name, value in _ROWS:
        cells = [value(each) for each in measured]
        if any(cells):
            table.add_row(name, *(cell or "-" for cell in cells))
    table.caption = "the timed steps of one round"
    if report.rounds > 1:
        table.caption = f"medians of {report.rounds} rounds, the least and the most in brackets"
    say_table(table)
    say(
        f"padding avoided: {report.padding_avoided:.0%} of the tokens of padded batches"
        if report.packed
        else "padding avoided: none, this encoder is padded"
    )
    table = plain_table("", ("where the time of a step goes", *(each.name for each in measured)))
    for category in CATEGORIES:
        parts = [each.where.get(category, 0.0) for each in measured]
        if any(parts):
            table.add_row(category, *(f"{part:.1%}" for part in parts))
    say_table(table)
    if report.gain is not None:
        say(f"train.precision = auto takes {_auto(report)} here: {_gain(report.gain)}")


def report_json(report: BenchReport, kept: Path | None) -> dict[str, Any]:
    """Return what was measured as data.

    Args:
        report: What was measured.
        kept: The file that it is kept in, None where it is not.
    """
    composition = report.composition
    return {
        "place": asdict(report.place),
        "device": report.device,
        "threads": report.threads,
        "recipe": composition.recipe,
        "model": composition.model.name,
        "data": list(composition.data.path),
        "rows": report.rows,
        "batch_size": report.batch_size,
        "packed": report.packed,
        "tokens_per_step": report.tokens,
        "padding_avoided": report.padding_avoided,
        "rounds": report.rounds,
        "steps": report.steps,
        "precisions": {each.name: _precision_json(each) for each in report.precisions},
        "gain": _spread_json(report.gain),
        "auto": None if report.gain is None else _auto(report),
        "kept": None if kept is None else str(kept),
    }


def _precision_json(measured: MeasuredPrecision) -> dict[str, Any]:
    return {
        "sentences_per_second": _spread_json(measured.sentences),
        "tokens_per_second": _spread_json(measured.tokens),
        "seconds_per_step": _spread_json(measured.seconds),
        "floor_seconds_per_step": _spread_json(measured.floor),
        "share_of_floor": _spread_json(measured.share),
        "share_of_own_floor": _spread_json(measured.own_share),
        "peak_memory": asdict(measured.peak),
        "where": measured.where,
    }


def _spread_json(spread: Spread | None) -> dict[str, float] | None:
    return None if spread is None else asdict(spread)


def _machine(report: BenchReport) -> str:
    place = report.place
    gpu = "" if place.device == "cpu" else f"{place.device}, "
    count = f"{report.threads} thread{'' if report.threads == 1 else 's'}"
    return f"{gpu}{place.processor}; {count}; torch {place.torch}"


def _auto(report: BenchReport) -> str:
    from cse_core.runtime.device import faster

    return "" if report.gain is None else faster(report.gain.median)


def _gain(gain: Spread) -> str:
    return f"bf16 is {_in_words(gain, '.2f')} times as fast as fp32"


def _in_words(spread: Spread | None, form: str, scale: float = 1.0) -> str:
    """Return ``12.3 [11.9-12.8]``, the median alone where there is one round; empty for None."""
    if spread is None:
        return ""
    middle, low, high = (
        format(value * scale, form) for value in (spread.median, spread.low, spread.high)
    )
    return middle if spread.low == spread.high else f"{middle} [{low}-{high}]"


def _memory(peak: Peak) -> str:
    if peak.bytes is None:
        return ""
    return f"{peak.bytes / 2**20:,.0f} MB{' since its start' if peak.since_start else ''}"


_ROWS: tuple[tuple[str, Callable[[MeasuredPrecision], str]], ...] = (
    ("sentences/s", lambda m: _in_words(m.sentences, ",.1f")),
    ("real tokens/s", lambda m: _in_words(m.tokens, ",.0f")),
    ("ms a step", lambda m: _in_words(m.seconds, ",.1f", 1000)),
    ("ms of its floor", lambda m: _in_words(m.floor, ",.1f", 1000)),
    ("share of the floor, %", lambda m: _in_words(m.share, ".0f", 100)),
    ("with its own last layer, %", lambda m: _in_words(m.own_share, ".0f", 100)),
    ("peak memory", lambda m: _memory(m.peak)),
)
