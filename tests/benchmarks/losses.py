"""Steps of losses that both have, beside sentence-transformers' own."""

import json
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.benchmarks.inputs import FOR_VOCABULARY, make_model, read, registry, silence, write
from tests.benchmarks.report import PEER, Report, alternate, ratios, spread
from tests.benchmarks.sections import Given, folder
from tests.benchmarks.work import LR, SEED, watched, watched_peer

LENGTH = 64


@dataclass(frozen=True)
class Case:
    """A loss of both: what cse composes of it, and the peer's loss of a model and a teacher.

    Attributes:
        columns: Of the data that the peer is given, in its order; cse reads them by their names.
    """

    key: str
    title: str
    sets: Sequence[str]
    kinds: Mapping[str, Sequence[str]]
    columns: Sequence[str]
    loss: Callable[[Any, Any, list[int]], Any]
    recipe: str | None = None


def _losses() -> Any:
    from sentence_transformers import losses

    return losses


TEACHER = ("branch.frozen.model=TEACHER", "branch.frozen.cache=true")
CASES = (
    Case("tsdae", "TSDAE", (), {}, ("damaged", "text"),
         lambda model, *_: _losses().DenoisingAutoEncoderLoss(model), "tsdae"),
    Case("gist", "GISTEmbed", ("branch.frozen.model=TEACHER", "loss.infonce.in_batch=both"),
         {"pool": ["mean"], "negatives": ["guide"], "loss": ["infonce"]}, ("text", "positive"),
         lambda model, teacher, _: _losses().GISTEmbedLoss(model, teacher)),
    Case("cosent", "CoSENT", (), {"pool": ["mean"], "loss": ["cosent"]},
         ("text", "positive", "score"), lambda model, *_: _losses().CoSENTLoss(model)),
    Case("matryoshka", "Matryoshka over in-batch negatives",
         ("loss.infonce.dimensions=SIZES",), {"pool": ["mean"], "loss": ["infonce"]},
         ("text", "positive"),
         lambda model, _, sizes: _losses().MatryoshkaLoss(
             model, _losses().MultipleNegativesRankingLoss(model), sizes)),
    Case("margin-mse", "MarginMSE, the teacher's margins known", TEACHER,
         {"pool": ["mean"], "loss": ["margin-mse"]}, ("text", "positive", "negative", "score"),
         lambda model, *_: _losses().MarginMSELoss(model)),
)  # fmt: skip


def losses(report: Report, given: Given) -> None:
    """Sentences per second of losses that both have, in fp32 on the same texts.

    The peer is given what it wants to be given: texts that are damaged already, a teacher's
    margins. cse damages texts in the step, and encodes with the teacher before the first.
    """
    batch, steps = 8 if given.quick else 16, 1 if given.quick else 2
    shape = given.shape(6, 384)
    report.say(f"A random BERT of {shape}, batches of {batch}, at most {LENGTH} tokens, fp32; "
               f"{given.repeats} repeats of {steps} steps.")  # fmt: skip
    texts = read(given.texts, FOR_VOCABULARY)
    with folder() as place:
        models = [make_model(place / name, texts, shape) for name in ("model", "teacher")]
        rows = _rows(texts, batch * (steps + 1))
        data = write(place / "rows.jsonl", map(json.dumps, rows))
        lines = []
        for case in CASES:
            seconds = alternate(
                {
                    "cse": lambda case=case: _own(case, models, data, batch, steps),
                    PEER: lambda case=case: _peer(case, models, rows, batch, steps),
                },
                given.repeats,
            )
            report.add(case.key, ratios(seconds[PEER], seconds["cse"]))
            speeds = (spread([batch / each for each in seconds[who]], ".1f") for who in seconds)
            lines.append([case.title, *speeds])
        report.table("Sentences a second", ["", "cse", PEER], lines)


def _sizes(folder: str) -> list[int]:
    """Return the dimension of a model's vectors, two thirds, a third and a sixth of it."""
    from transformers import AutoConfig

    whole = int(AutoConfig.from_pretrained(folder).hidden_size)
    return [whole, whole * 2 // 3, whole // 3, whole // 6]


def _rows(texts: Sequence[str], count: int) -> list[dict[str, Any]]:
    draw = random.Random(0)
    rows = []
    for place in range(count):
        text, positive, negative = (texts[(place + k * count) % len(texts)] for k in range(3))
        kept = [word for word in text.split() if draw.random() > 0.6] or text.split()[:1]
        rows.append({"text": text, "damaged": " ".join(kept), "positive": positive,
                     "negative": negative, "score": round(draw.random(), 3)})  # fmt: skip
    return rows


def _own(case: Case, models: Sequence[str], data: str, batch: int, steps: int) -> float:
    from cse_engine.compose.compose import resolve

    sizes = str(_sizes(models[0]))
    sets = [
        f"train.max_steps={steps + 1}", f"train.batch_size={batch}", f"train.lr={LR}",
        f"model.max_length={LENGTH}", "train.precision=fp32", f"train.seed={SEED}",
        "train.eval_steps=0", "train.save_steps=0", "train.log_steps=1000", "data.shuffle=false",
        "train.device=cpu",
        *(each.replace("TEACHER", models[1]).replace("SIZES", sizes) for each in case.sets),
    ]  # fmt: skip
    kinds: Any = case.kinds
    run = resolve(registry(), recipe=case.recipe, kinds=kinds, model=models[0], data=[data],
                  dev=["none"], sets=sets)  # fmt: skip
    return statistics.mean(watched(run, steps).seconds)


def _peer(
    case: Case, models: Sequence[str], rows: Sequence[Mapping[str, Any]], batch: int, steps: int
) -> float:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers import models as modules
    from transformers import AutoConfig

    silence()

    def load(folder: str) -> SentenceTransformer:
        size = int(AutoConfig.from_pretrained(folder).hidden_size)
        mode = "cls" if case.key == "tsdae" else "mean"
        word = modules.Transformer(folder, max_seq_length=LENGTH)
        pooling = modules.Pooling(size, pooling_mode=mode)
        return SentenceTransformer(modules=[word, pooling], device="cpu")

    model = load(models[0])
    loss = case.loss(model, load(models[1]), _sizes(models[0]))
    columns = {name: [row[name] for row in rows] for name in case.columns}
    return statistics.mean(watched_peer(model, loss, columns, batch, steps).seconds)
