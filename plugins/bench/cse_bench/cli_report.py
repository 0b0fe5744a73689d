"""What ``cse bench`` prints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cse_cli.terminal.console import echo, plain_table, say_table

if TYPE_CHECKING:
    from cse_bench.memory import Peak
    from cse_bench.report import BenchReport, MeasuredPrecision, Spread


GAIN = 1.1
"""How many times as fast as fp32 bf16 has to be to be worth its rounding."""


def show_report(report: BenchReport) -> None:
    """Print what was measured on stdout."""
    from cse_bench.where import CATEGORIES

    composition, measured = report.composition, report.precisions
    echo(f"machine: {_machine(report)}")
    echo(
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
    echo(
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
    if (advice := advice_of(report)) is not None:
        echo(advice)


def advice_of(report: BenchReport) -> str | None:
    """Return which number format to train in, and what to type; None where one was measured."""
    if report.gain is None:
        return None
    faster = "bf16" if report.gain.median >= GAIN else "fp32"
    measured = f"bf16 was {_in_words(report.gain, '.2f')} times as fast as fp32 here"
    if faster == report.auto:
        return f"{measured}: train.precision = auto takes {faster}"
    return f"{measured}: add --train.precision {faster}, auto takes {report.auto}"


def report_json(report: BenchReport) -> dict[str, Any]:
    """Return what was measured as data."""
    composition = report.composition
    return {
        "place": {
            "processor": report.processor,
            "device": report.gpu or report.device.partition(":")[0],
            "torch": report.torch,
        },
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
        "auto": report.auto,
        "advice": advice_of(report),
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
    gpu = "" if report.gpu is None else f"{report.gpu}, "
    count = f"{report.threads} thread{'' if report.threads == 1 else 's'}"
    return f"{gpu}{report.processor}; {count}; torch {report.torch}"


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
