"""Whole runs of simcse: resumed ones, and their speed."""

import random
import signal
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import torch

from cse_core.reporter import Reporter
from cse_defaults.texts import read_data
from cse_engine.compose.compose import resolve
from cse_engine.run.prepare import prepare
from cse_engine.run.run import read_run, resume, train
from cse_engine.run.signals import Stopped
from cse_engine.run.trainer import Outcome
from tests.benchmarks.inputs import Shape, make_model, read, registry, write
from tests.benchmarks.report import PEER
from tests.benchmarks.work import Work, tokenising
from tests.benchmarks.work import run as measured
from tests.gpu.setting import Setting, exact

SIZES = {"MiniLM": Shape(6, 384), "BERT-base": Shape(12, 768), "tiny": Shape(2, 64)}
VARIANTS = {
    "plain": ((), ()), "chunks": ((), ("train.chunk_size=4",)), "fgsm": (("fgsm",), ()),
    "compiled": ((), ("train.compile=true", "train.chunk_size=4")),
}  # fmt: skip
"""Augmenters and options of resumed runs."""
AT_ONCE = 32_768
"""Tokens encoded at once."""
READ = partial(read_data, registry=registry())
OFF = ("train.dev=[none]", "train.eval_steps=0", "train.save_steps=0")


class Steps(Reporter):
    """Calls a function after each step."""

    def __init__(self, done: Callable[[int], object]) -> None:
        self.step = done  # type: ignore[method-assign, assignment]


def simcse(
    setting: Setting, out: Path, *sets: str, aug: Sequence[str] = (),
    done: Callable[[int], object] = lambda _: None,
) -> Outcome:  # fmt: skip
    """Train the starter's encoder; ``done`` is called after each step."""
    sets = (f"train.device={setting.device}", *sets)
    composition = resolve(registry(), recipe="simcse", kinds={"aug": aug}, sets=sets)
    prepared = prepare(composition, registry(), reporter=Steps(done), read_texts=READ)
    return train(prepared, out)


def drawn(
    setting: Setting, folder: Path, model: str, length: int, batch: int, chunk: int | None,
    steps: int,
) -> Work:  # fmt: skip
    """Return a run in bf16 of an encoder on rows of drawn words.

    Words in a row are log-normal with a median of 15 for 32 tokens and a spread of 0.57: of padded
    batches about a third is padding.
    """
    words = " ".join(read(None, 2_000)).split()
    draws = random.Random(0)
    counts = (
        draws.lognormvariate(0.0, 0.57) * length * 15 / 32 for _ in range(batch * (steps + 1))
    )
    rows = [" ".join(draws.choices(words, k=max(2, round(count)))) for count in counts]
    return Work(
        who="simcse", model=model, texts=write(folder / "texts.txt", rows), length=length,
        batch=batch, steps=steps, chunk=chunk, device=setting.device,
        precision="fp32" if setting.small else "bf16",
    )  # fmt: skip


def resumed(setting: Setting) -> None:
    """A run that was stopped and resumed ends with the weights of one that was not, bit for bit."""
    exact()
    torch.use_deterministic_algorithms(True)
    steps, batch = (4, 8) if setting.small else (12, 64)

    def stop(step: int) -> None:
        if step == steps // 2:
            signal.raise_signal(signal.SIGTERM)

    for variant, precision in product(VARIANTS, ("fp32",) if setting.small else ("fp32", "bf16")):
        about = {"variant": variant, "format": precision}
        with setting.trying("resume", **about), tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            aug, own = VARIANTS[variant]
            sets = (*own, *OFF, f"train.precision={precision}")
            sets += (f"train.max_steps={steps}", f"train.batch_size={batch}")
            simcse(setting, folder / "whole", *sets, aug=aug)
            simcse(setting, folder / "again", *sets, aug=aug)
            try:
                simcse(setting, folder / "parts", *sets, aug=aug, done=stop)
            except Stopped:
                begun = read_run(folder / "parts", registry())
                resume(
                    begun,
                    prepare(begun.composition, registry(), reporter=Reporter(),
                            read_texts=READ, recorded=begun.settings["run"]),
                )  # fmt: skip
            files = sorted((folder / "whole/model").rglob("*.safetensors"))
            same = {
                other: bool(files)
                and all(
                    file.read_bytes()
                    == Path(str(file).replace("/whole/", f"/{other}/")).read_bytes()
                    for file in files
                )
                for other in ("again", "parts")
            }
            setting.keep("resume", all(same.values()), **about, **same)


def speed(setting: Setting) -> None:
    """Sentences a second and peak memory beside sentence-transformers' trainer.

    Random encoders, rows of drawn words with log-normal lengths, the same batches, length and loss
    in bf16; tokens are counted on both sides. Large batches cache gradients in the same chunks.
    """
    cells = [*product((64, 512, 4096), (32, 512), ("MiniLM", "BERT-base")), (16_384, 32, "MiniLM")]
    with tempfile.TemporaryDirectory() as folder:
        for batch, length, name in ((8, 16, "tiny"),) if setting.small else cells:
            chunk = None if batch * length <= AT_ONCE else AT_ONCE // length
            steps = 1 if setting.small or batch > 512 else 3 if batch > 64 else 8
            about = {"encoder": name, "tokens": length, "batch": batch}
            with setting.trying("speed", **about):
                model = Path(folder) / name
                if not model.exists():
                    make_model(model, read(None, 2_000), SIZES[name])
                base = drawn(setting, Path(folder), str(model), length, batch, chunk, steps)
                tokens, padding = tokenising(base)
                facts: dict[str, float] = {}
                for who, name in (("simcse", "cse"), (PEER, PEER)):
                    watch = measured(replace(base, who=who))
                    took = statistics.median(watch.seconds) + (tokens if name == "cse" else 0.0)
                    facts |= {f"{name}_a_second": batch / took, f"{name}_MB": watch.most}
                ratio = facts["cse_a_second"] / facts[f"{PEER}_a_second"]
                setting.keep("speed", None, **about, padding=padding, **facts, times=ratio)
