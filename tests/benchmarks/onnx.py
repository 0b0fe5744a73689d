"""int8 beside ONNX: ``python -m tests.benchmarks.onnx MODEL TEXTS PYTHON``.

PYTHON is an interpreter with ``sentence-transformers[onnx]``, which does not install beside
transformers 5. Encoders take turns over 1,500 lines of TEXTS, on one thread; seconds are those of
the processor. Cosines are with the vectors of fp32 here.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import cse
from tests.benchmarks import inputs

TEXTS, ROUNDS = 1500, 5
PEER = """
import json, sys, time
import numpy as np, onnxruntime, torch
from sentence_transformers import SentenceTransformer, export_dynamic_quantized_onnx_model

model, kind, place = sys.argv[1:]
torch.set_num_threads(1)
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
onnx = {"session_options": options, "provider": "CPUExecutionProvider"}
load = lambda folder, **how: SentenceTransformer(folder, device="cpu", **how)
if kind == "PyTorch":
    encoder = load(model)
else:
    encoder = load(model, backend="onnx", model_kwargs=onnx)
if kind == "ONNX int8":
    encoder.save_pretrained(place)
    export_dynamic_quantized_onnx_model(encoder, "avx512_vnni", place)
    onnx["file_name"] = "onnx/model_qint8_avx512_vnni.onnx"
    encoder = load(place, backend="onnx", model_kwargs=onnx)
for line in sys.stdin:
    texts, began = json.loads(line), time.process_time()
    vectors = encoder.encode(texts, show_progress_bar=False)
    print(time.process_time() - began, flush=True)
    np.save(place + "/vectors.npy", vectors)
    print("saved", flush=True)
"""

Encode = Callable[[Sequence[str]], tuple[float, NDArray[Any]]]


def here(model: cse.Model, texts: Sequence[str]) -> tuple[float, NDArray[Any]]:
    """Return the seconds and the vectors, ``[T, D]``."""
    began = time.process_time()
    vectors = model.encode(list(texts))
    return time.process_time() - began, np.asarray(vectors)


def peer(running: Any, place: str, texts: Sequence[str]) -> tuple[float, NDArray[Any]]:
    print(json.dumps(texts), file=running.stdin, flush=True)
    seconds = float(running.stdout.readline())
    running.stdout.readline()
    return seconds, np.load(Path(place, "vectors.npy"))


def main(model: str, texts: str, python: str) -> None:
    torch.set_num_threads(1)
    lines = inputs.read(texts, TEXTS)
    encoders: dict[str, Encode] = {
        precision: partial(here, cse.load(model, device="cpu", precision=precision))
        for precision in ("fp32", "bf16", "int8")
    }
    with ExitStack() as stack:
        for kind in ("PyTorch", "ONNX", "ONNX int8"):
            place = stack.enter_context(TemporaryDirectory())
            running = stack.enter_context(subprocess.Popen(
                [python, "-c", PEER, model, kind, place], text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            ))  # fmt: skip
            encoders[f"sentence-transformers, {kind}"] = partial(peer, running, place)
        for encode in encoders.values():  # loads and warms up
            encode(lines[:100])
        turns = [{name: encode(lines) for name, encode in encoders.items()} for _ in range(ROUNDS)]
    wanted = cse.unit(turns[0]["fp32"][1])
    for name in encoders:
        speeds = [TEXTS / turn[name][0] for turn in turns]
        ratios = [turn["sentence-transformers, PyTorch"][0] / turn[name][0] for turn in turns]
        cosines = (cse.unit(turns[0][name][1]) * wanted).sum(axis=1)
        print(
            f"{name}: {np.median(speeds):.0f} sentences/s, {np.median(ratios):.2f} times PyTorch "
            f"[{min(ratios):.2f}-{max(ratios):.2f}]; cosine {cosines.mean():.4f}, at least "
            f"{cosines.min():.4f}",
            flush=True,
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
