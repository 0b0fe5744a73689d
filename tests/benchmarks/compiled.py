"""Whether torch's compiler makes training on a processor faster, and how much of a step it could.

The layers of a second run are compiled (``train.compile``), and steps of both are timed in turn.
"""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from tests.benchmarks.inputs import FOR_VOCABULARY, make_model, read, silence, write
from tests.benchmarks.report import Report, alternate, ratios, spread
from tests.benchmarks.sections import Given, folder, precisions

if TYPE_CHECKING:
    import cse

BATCH, LENGTH, STEPS = 64, 32, 4
PRODUCTS = ("mm", "addmm", "bmm", "baddbmm")
FUSIBLE = (
    "gelu", "gelu_backward", "native_layer_norm", "native_layer_norm_backward", "add", "add_",
    "mul", "addcmul", "ge", "copy_", "sum",
)  # fmt: skip
"""What Inductor computes in loops of its own; casts are ``copy_``."""


def compiled(report: Report, given: Given) -> None:
    """Sentences a second with compiled layers, over those without; and what a step consists of."""
    import torch

    silence()
    if shutil.which(os.environ.get("CXX", "g++")) is None:
        report.say("This machine has no C++ compiler, which Inductor needs.")
        return
    shape, batch, lines = given.shape(6, 384), 8 if given.quick else BATCH, []
    shares: dict[str, Counter[str]] = {}
    texts = read(given.texts, 4_000)
    with folder() as place:
        model = make_model(place / "model", texts[:FOR_VOCABULARY], shape)
        file = write(place / "texts.txt", texts)
        for precision in precisions():
            with ExitStack() as stack:
                runs = [
                    stack.enter_context(_run(model, file, precision, batch, compiled))
                    for compiled in (False, True)
                ]
                shares[precision] = _shares(runs[0])
                began = time.perf_counter()
                runs[1].step()
                took = time.perf_counter() - began
                works = {
                    "as they are": partial(_seconds, runs[0]),
                    "compiled": partial(_seconds, runs[1]),
                }
                found = alternate(works, given.repeats)
            report.add(precision, ratios(found["as they are"], found["compiled"]))
            speeds = [spread([batch / s for s in found[name]], ".1f") for name in works]
            lines.append([precision, *speeds, f"{took:.0f} s"])
    most = [f"{1 / (1 - s['what can be fused']):.2f} ({name})" for name, s in shares.items()]
    report.say(
        f"A random BERT of {shape}, batches of {batch}, at most {LENGTH} tokens; {given.repeats} "
        f"repeats of {STEPS} steps, torch {torch.__version__}. If what can be fused cost nothing, "
        f"training would be {' or '.join(most)} times as fast."
    )
    head = ("", "as they are, sentences/s", "compiled, sentences/s", "first compiled step")
    report.table("Compiled layers", head, lines)
    kinds = ("matrix products", "what can be fused", "all else")
    report.table(
        "Shares of a step", ("", *shares),
        [[kind, *(f"{100 * share[kind]:.1f}%" for share in shares.values())] for kind in kinds],
    )  # fmt: skip


def _run(model: str, file: str, precision: str, batch: int, compiled: bool) -> cse.Session:
    import torch

    import cse

    options = {
        "train.batch_size": batch, "model.max_length": LENGTH,
        "train.precision": precision, "train.device": "cpu", "train.max_steps": 10_000,
        "train.epochs": 10_000, "train.threads": torch.get_num_threads(), "train.compile": compiled,
    }  # fmt: skip
    return cse.Session("simcse", model=model, data=file, dev="none", options=options).prepare()


def _seconds(run: cse.Session) -> float:
    began = time.perf_counter()
    for _ in range(STEPS):
        run.step()
    return (time.perf_counter() - began) / STEPS


def _shares(run: cse.Session) -> Counter[str]:
    """Return the share of the time of steps that each kind of operator takes."""
    from torch.profiler import ProfilerActivity, profile

    run.step()
    with profile(activities=[ProfilerActivity.CPU]) as watched:
        for _ in range(STEPS):
            run.step()
    kinds = dict.fromkeys(PRODUCTS, "matrix products") | dict.fromkeys(FUSIBLE, "what can be fused")
    took = Counter[str]()
    for event in watched.key_averages():
        kind = kinds.get(event.key.removeprefix("aten::"), "all else")
        took[kind] += event.self_cpu_time_total
    return Counter({kind: value / took.total() for kind, value in took.items()})
