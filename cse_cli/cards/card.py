"""The card of a trained model, ``model/README.md``: the hub library's classes and a template.

It names no folder of the machine. ``recipe.toml``, which repeats the run, stands beside it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import tomlkit

from cse_cli.plugins.citations import papers_of
from cse_cli.terminal.markdown import code, markdown_table, plain
from cse_core.files import EVALUATIONS, MANIFEST, RUN_FILE, atomic_write
from cse_core.hookspecs import COMPONENT_SPECS
from cse_core.records import EncoderSpec, Paper
from cse_defaults.texts.hub import hub_name
from cse_engine.run.export import public_name

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

    from cse_core.registry.registry import Registry

_TEMPLATE = Path(__file__).with_name("card.md.jinja")
_NOT_QUALITY = ("alignment", "uniformity", "mean_cosine", "effective_rank", "tfidf", "jaccard")
"""Numbers beside a score that say how far vectors are spread, or what words alone score."""
_WAYS = ("truncate_dim", "precision", "prompt", "queries_model", "level")
"""Options of ``cse eval`` by which the same encoder scores otherwise."""
_BEGIN, _END = "<!-- scores of cse eval -->", "<!-- end of scores -->"


class Source(NamedTuple):
    """An encoder or texts of a run: its name without a folder, and what is known of its licence."""

    name: str
    on_hub: bool = False
    licence: str = ""


def write_card(run: Path, result: Mapping[str, Any], registry: Registry) -> None:
    """Write the card of a run and its recipe into the run's ``model/``.

    ``result`` is what ``result.json`` will hold; installed parts bring papers and licences.

    Raises:
        OSError: If a file cannot be read or written.
        ValueError: If one is not a file of a run.
    """
    from huggingface_hub import ModelCard, ModelCardData

    model = run / "model"
    manifest = json.loads((model / MANIFEST).read_text(encoding="utf-8"))
    document = tomlkit.parse((run / RUN_FILE).read_text(encoding="utf-8"))
    settings = document.unwrap()
    _replace_paths(document)
    atomic_write(model / "recipe.toml", tomlkit.dumps(document))

    stages = [manifest.get("slice"), manifest["row"], *manifest["heads"]]
    pooling = " + ".join(stage["use"] for stage in stages if stage)
    portable = manifest.get("why_not") is None
    recipe = settings.get("name") or ""
    base = encoder_source(settings["model"]["name"], manifest, registry)
    texts = [text_source(name, registry) for name in settings["data"]["path"]]
    scores = _scores(settings, result)
    about = {"max_length": manifest["max_length"], "pooling": pooling}
    chose = result["chosen_by"] if result["step"] else None  # else the start is kept
    results = [
        _result(n, k, v, about | {"chose_the_checkpoint": f"{n}.{k}" == chose})
        for n, k, v in scores
        if k not in _NOT_QUALITY and "." not in k  # a plugin's numbers
    ]
    names = [(k, p["name"]) for k in COMPONENT_SPECS for p in settings.get(k, ())]
    papers = dict.fromkeys(papers_of(settings, registry))
    card = ModelCard.from_template(
        ModelCardData(
            model_name=f"{recipe or 'cse'}-{base.name}",
            base_model=base.name if base.on_hub else None,
            datasets=[text.name for text in texts if text.on_hub] or None,
            eval_results=results or None,
            library_name="sentence-transformers" if portable else "cse",
            pipeline_tag="sentence-similarity" if portable else None,
            tags=["sentence-similarity", "feature-extraction", "contrastive-learning", "cse"],
        ),
        template_path=str(_TEMPLATE),
        base=base,
        code=code,
        manifest=manifest,
        papers="\n\n".join(
            f"```bibtex\n{paper.bibtex.strip()}\n```" if isinstance(paper, Paper) else f"- {paper}"
            for paper in papers
        ),
        parts=", ".join(code(f"{kind}.{name}") for kind, name in names if name != "online"),
        plain=plain,
        pooling=pooling,
        portable=portable,
        recipe=recipe,
        result={**result, "chosen_by": chose},
        run=settings["run"],
        scores=scores,
        texts=texts,
        train=settings["train"],
        versions=", ".join(f"{name} {v}" for name, v in settings.get("versions", {}).items()),
    )
    atomic_write(model / "README.md", f"{card}\n")


def add_evaluations(run: Path) -> None:
    """Write the last scores of ``cse eval`` into a run's card, whose other lines stay as they are.

    Raises:
        OSError: If a file cannot be read or written.
        ValueError: If the card's metadata or a line of evaluations cannot be read.
    """
    from huggingface_hub import ModelCard

    last: dict[tuple[str, ...], EvalResult] = {}
    for line in map(json.loads, (run / EVALUATIONS).read_text(encoding="utf-8").splitlines()):
        for name, scores in line["results"].items():
            about = {key: scores[key] for key in ("setting", "seeds") if scores.get(key)}
            given = {key: line["options"][key] for key in _WAYS if key in line.get("options", {})}
            if Path(given.get("queries_model", "")).is_absolute():  # of no use to others
                given["queries_model"] = Path(given["queries_model"]).name
            about = {"encoder": line["encoder"], **given, **about, "cse_version": line["version"]}
            for number, value in scores.items():
                if isinstance(value, float) and number not in _NOT_QUALITY:
                    score = _result(name, number, value, about, scores.get("split"))
                    last[name, number, line["encoder"], str(given)] = score
    path = run / "model" / "README.md"
    card = ModelCard(path.read_text(encoding="utf-8"))
    before = card.data.get("eval_results") or ()
    kept = [result for result in before if "encoder" not in (result.metric_args or {})]
    card.data["eval_results"] = [*kept, *last.values()]
    card.data["model_name"] = card.data.get("model_name") or "cse"
    rows = []
    for entry in last.values():
        args = {**(entry.metric_args or {})}
        how = [args["encoder"],
               *(f"{k} {args[k]}" for k in (*_WAYS, "setting", "seeds") if k in args)]  # fmt: skip
        cells = [entry.dataset_name, entry.dataset_split or "", entry.metric_name or ""]
        cells += [f"{entry.metric_value:.2f}", "; ".join(how)]
        rows.append(list(map(plain, cells)))
    table = markdown_table(["set", "split", "number", "value", "setting"], rows)
    section = "\n".join([_BEGIN, "## Evaluation", "", table, _END, "", ""])
    text = re.sub(rf"{_BEGIN}.*?{_END}\n*", "", card.text, flags=re.DOTALL)
    head, mark, rest = text.partition("## Use it")
    card.text = f"{head}{section}{mark}{rest}" if mark else f"{text.rstrip()}\n\n{section}"
    atomic_write(path, str(card).rstrip("\n") + "\n")


def _result(
    name: str, number: str, value: float, about: dict[str, Any], split: str | None = None
) -> EvalResult:
    from huggingface_hub import EvalResult

    graded = number == "spearman"
    return EvalResult(
        task_type="sentence-similarity" if graded else "feature-extraction",
        dataset_type=name,
        dataset_name=name,
        dataset_split=split or None,
        metric_type="cos_sim_spearman" if graded else number,
        metric_name="Spearman x100 of cosines" if graded else number,
        metric_value=round(value, 2),
        metric_args=about,
    )


def _scores(settings: Mapping[str, Any], result: Mapping[str, Any]) -> list[tuple[str, str, float]]:
    """Return dev set, number and value of the chosen weights; a dev set's name may have dots."""
    scores = []
    sets = sorted(settings["run"]["data"].get("dev", []), key=len, reverse=True)
    for name, value in result["scores"].items():
        if dev := next((dev_set for dev_set in sets if name.startswith(f"{dev_set}.")), None):
            scores.append((dev, name.removeprefix(f"{dev}."), value))
    return scores


def encoder_source(name: str, manifest: Mapping[str, Any], registry: Registry) -> Source:
    """Return the encoder that a run began with; ``manifest`` is ``cse.json`` of its model."""
    for record in registry.all(EncoderSpec):
        # A model that was trained on from one of the starter has its terms.
        if record.name == name or manifest.get("origin") == record.name:
            return Source(public_name(name), licence=record.spec.licence)
    return Source(public_name(name), on_hub=public_name(name) == name and not os.path.exists(name))


def text_source(name: str, registry: Registry) -> Source:
    """Return texts that a run was trained on; a licence of the hub is that of its cached card."""
    from huggingface_hub import DatasetCard, try_to_load_from_cache

    if name in registry.datasets():
        return Source(name, licence=registry.datasets()[name].spec.licence)
    if (on_hub := hub_name(name)) is None:
        return Source(public_name(name))
    try:
        path = try_to_load_from_cache(on_hub.repository, "README.md", repo_type="dataset")
        licence = DatasetCard.load(path).data.license if isinstance(path, str) else None
    except Exception:  # a card on the hub may be anything
        licence = None
    named = licence if isinstance(licence, list) else [licence or ""]
    return Source(on_hub.repository, on_hub=True, licence=", ".join(map(str, named)))


def _replace_paths(value: Any) -> Any:
    """Replace paths in a TOML value by the names of their files, in place; return the value."""
    if isinstance(value, dict | list):
        for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
            if (new := _replace_paths(item)) is not item:
                value[key] = new
    elif isinstance(value, str):
        path = Path(value).expanduser()
        if path.is_absolute() or ("/" in value and path.exists()):
            return path.resolve().name
    return value
