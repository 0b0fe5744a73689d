"""The card of a trained model, ``model/README.md``, by the hub library's own classes.

It is written from the files of a finished run, and names no folder of the machine. The recipe that
repeats the run stands beside it, as ``recipe.toml``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomlkit

from cse_cli.cards.origins import Source, encoder_source, text_source
from cse_cli.plugins.citations import papers_of
from cse_core.records import COMPONENT_SPECS, Paper
from cse_core.runtime.atomic_files import atomic_write
from cse_core.runtime.model_files import MANIFEST, RUN_FILE
from cse_core.training.export import visible

if TYPE_CHECKING:
    from huggingface_hub import EvalResult, ModelCardData

    from cse_core.registry.registry import Registry

RECIPE = "recipe.toml"
"""Beside the card: what repeats the run, without folders of the machine."""
SPREAD = ("alignment", "uniformity", "mean_cosine", "effective_rank")
"""Numbers of a dev set that say how far vectors are spread, not how good they are."""


def write_card(run: Path, result: Mapping[str, Any], registry: Registry) -> None:
    """Write the card of a run and its recipe into the run's ``model/``.

    Args:
        run: The run's folder, with its model.
        result: What ``result.json`` will hold.
        registry: The installed parts, which bring papers and licences.

    Raises:
        OSError: If a file cannot be read or written.
        ValueError: If one is not a file of a run.
    """
    card = Card.of(run, result, registry)
    atomic_write(run / "model" / RECIPE, card.recipe)
    atomic_write(run / "model" / "README.md", card.text())


@dataclass(frozen=True)
class Card:
    """What a card says.

    Attributes:
        settings: What ``run.toml`` holds, without folders of the machine.
        result: What ``result.json`` holds, or will hold.
        manifest: What ``cse.json`` of the model holds.
        portable: Whether sentence-transformers loads the model as it is.
        why_not: Why it does not, where that is known.
        base: The encoder that was trained.
        texts: What it was trained on.
        papers: Citations of the recipe and the parts, each once.
    """

    settings: Mapping[str, Any]
    result: Mapping[str, Any]
    manifest: Mapping[str, Any]
    recipe: str
    portable: bool
    why_not: str
    base: Source
    texts: tuple[Source, ...]
    papers: tuple[str, ...]

    @classmethod
    def of(cls, run: Path, result: Mapping[str, Any], registry: Registry) -> Card:
        """Read a run.

        Raises:
            OSError: If a file cannot be read.
            ValueError: If one is not a file of a run.
        """
        model = run / "model"
        document = tomlkit.parse((run / RUN_FILE).read_text(encoding="utf-8"))
        settings = document.unwrap()
        manifest = json.loads((model / MANIFEST).read_text(encoding="utf-8"))
        base = encoder_source(settings["model"]["name"], manifest, registry)
        return cls(
            settings=settings,
            result=result,
            manifest=manifest,
            recipe=_portable_recipe(document),
            portable=(model / "modules.json").is_file(),
            why_not=manifest.get("why_not") or "",
            base=base,
            texts=tuple(text_source(name, registry) for name in settings["data"]["path"]),
            papers=tuple(dict.fromkeys(papers_of(settings, registry))),
        )

    def text(self) -> str:
        """Return the card."""
        from huggingface_hub import ModelCard

        made = ModelCard(f"---\n{self.data().to_yaml()}\n---\n\n{self._body()}\n")
        return str(made)

    def data(self) -> ModelCardData:
        """Return what the hub reads of it."""
        from huggingface_hub import ModelCardData

        of_hub = [text.name for text in self.texts if text.on_hub]
        return ModelCardData(
            model_name=f"{self.settings.get('name') or 'cse'}-{self.base.name}",
            base_model=self.base.name if self.base.on_hub else None,
            datasets=of_hub or None,
            eval_results=list(self._results()) or None,
            library_name="sentence-transformers" if self.portable else "cse",
            pipeline_tag="sentence-similarity" if self.portable else None,
            tags=["sentence-similarity", "feature-extraction", "contrastive-learning", "cse"],
        )

    def _results(self) -> Iterator[EvalResult]:
        from huggingface_hub import EvalResult

        for name, number, value in self._scores():
            if number in SPREAD or "." in number:  # how vectors are spread; a plugin's numbers
                continue
            graded = number == "spearman"
            yield EvalResult(
                task_type="sentence-similarity",
                dataset_type=name,
                dataset_name=name,
                metric_type="cos_sim_spearman" if graded else number,
                metric_name="Spearman x100 of cosines, all pairs" if graded else number,
                metric_value=round(value, 2),
                metric_args={
                    "max_length": self.manifest["max_length"],
                    "pooling": self._pooling(),
                    "chose_the_checkpoint": f"{name}.{number}" == self.result["chosen_by"],
                },
            )

    def _scores(self) -> Iterator[tuple[str, str, float]]:
        """Yield dev set, number and value of the chosen weights."""
        sets = sorted(self.settings["run"]["data"].get("dev", []), key=len, reverse=True)
        for name, value in self.result["scores"].items():
            for dev in sets:  # a name has dots itself
                if name.startswith(f"{dev}."):
                    yield dev, name.removeprefix(f"{dev}."), value
                    break

    def _pooling(self) -> str:
        stages = [self.manifest.get("slice"), self.manifest["row"], *self.manifest["heads"]]
        return " + ".join(stage["use"] for stage in stages if stage)

    def _body(self) -> str:
        train, run = self.settings["train"], self.settings["run"]
        recipe = self.settings.get("name") or ""
        versions = self.settings.get("versions", {})
        parts = [
            f"{kind}.{part['name']}"
            for kind in COMPONENT_SPECS
            for part in self.settings.get(kind, ())
            if part["name"] != "online"
        ]
        facts = {
            "base model": self.base.described(),
            "recipe": f"`{recipe}`" if recipe else "the default",
            "parts": ", ".join(f"`{part}`" for part in parts),
            "training": f"{self.result['steps']:,} steps, batches of {train['batch_size']}, "
            f"learning rate {train['lr']:g}, seed {train['seed']}, {run['precision']} on "
            f"{run['device']}",
            "checkpoint": _plain(self.manifest["about"].get("chosen") or ""),
            "pooling": f"`{self._pooling()}`",
            "longest text": f"{self.manifest['max_length']:,} tokens; the rest is cut off",
        }
        blocks = [
            f"# A sentence encoder: {recipe or 'cse'} from {_plain(self.base.name)}",
            "It maps texts to vectors; the cosine of two vectors says how near two texts are in "
            "meaning. It was trained with cse, which combines methods of contrastive learning.",
            _table(("", ""), facts.items()),
            *self._about_data(),
            *self._about_scores(),
            *self._about_use(),
            "## Repeat it",
            "`recipe.toml` beside this card has every setting. In a folder with the data:",
            _code("cse train --recipe recipe.toml --out runs/again", "sh"),
            "Made with " + ", ".join(f"{name} {versions[name]}" for name in versions) + ".",
        ]
        if self.papers:
            blocks += [
                "## Citation",
                "Please cite the papers whose parts were used:",
                *(
                    _code(paper.bibtex, "bibtex") if isinstance(paper, Paper) else f"- {paper}"
                    for paper in self.papers
                ),
            ]
        return "\n\n".join(blocks)

    def _about_data(self) -> Iterator[str]:
        data = self.settings["run"]["data"]
        yield "## Training data"
        yield _table(
            ("data", "licence"),
            ((text.described(), _plain(text.licence) or "not known") for text in self.texts),
        )
        synthetic = (
            " The texts are synthetic: a grammar made them, for trying things. Scores on them are "
            "no benchmark."
        )
        yield f"{data['rows']:,} rows, fingerprint `{data['fingerprint']}`." + (
            synthetic if data.get("synthetic") else ""
        )
        if self.base.licence:
            yield f"Licence of the base model: {_plain(self.base.licence)}."
        yield "The licence of this model depends on those of its data and its base model."

    def _about_scores(self) -> Iterator[str]:
        rows = [
            (f"`{name}`", f"`{number}`", f"{value:.2f}") for name, number, value in self._scores()
        ]
        if not rows:
            return
        yield "## Scores"
        yield _table(("dev set", "number", "value"), rows)
        yield "Measured in training, with the pooling and the length above."
        if chose := self.result["chosen_by"]:
            yield (
                f"`{chose}` chose the checkpoint, so its value is optimistic. `cse eval` "
                "scores the model on other texts."
            )

    def _about_use(self) -> Iterator[str]:
        yield "## Use it"
        if self.portable:
            yield _code(
                "from sentence_transformers import SentenceTransformer\n\n"
                'model = SentenceTransformer("MODEL")  # this folder, or its name on the hub\n'
                'vectors = model.encode(["a sentence", "another one"])',
                "python",
            )
            yield "or, with cse:"
        else:
            why = f" ({self.why_not})" if self.why_not else ""
            yield (
                f"sentence-transformers cannot express this model{why}: it computes different "
                "vectors from this folder. Use cse:"
            )
        yield _code("cse encode MODEL --text 'a sentence'", "sh")


def _portable_recipe(document: tomlkit.TOMLDocument) -> str:
    """Return ``run.toml`` with names instead of paths."""

    def named(value: Any) -> Any:
        if isinstance(value, dict):
            for key in list(value):
                if (new := named(value[key])) is not value[key]:
                    value[key] = new
        elif isinstance(value, list):
            for place, item in enumerate(value):
                if (new := named(item)) is not item:
                    value[place] = new
        elif isinstance(value, str):
            path = Path(value).expanduser()
            if path.is_absolute() or ("/" in value and path.exists()):
                return path.resolve().name
        return value

    named(document)
    return tomlkit.dumps(document)


def _plain(text: str) -> str:
    """Return a text in one line that Markdown shows as it is."""
    return re.sub(r"([\\`\[<|*_])", r"\\\1", visible(text))


def _table(head: tuple[str, ...], rows: Iterable[Iterable[str]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _code(text: str, kind: str) -> str:
    return f"```{kind}\n{text.strip()}\n```"
