"""Load a model for a command, after checking what can be checked without it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_type_hints

import typer

from cse_cli.models.processes import helpers, load_in_all
from cse_cli.options.completion import complete_model
from cse_cli.options.signatures import Command, parameters, with_flags
from cse_cli.terminal.console import echo_err, warn
from cse_cli.terminal.progress import libraries_quiet, spinner
from cse_core.errors import CseError, did_you_mean

if TYPE_CHECKING:
    from cse_cli.models.saved_model import SentenceModel
    from cse_core.registry.registry import Registry

_FLAGS = {"model.name": "MODEL", "train.device": "--device", "train.precision": "--precision",
          "inference.truncate_dim": "--truncate-dim"}  # fmt: skip

ModelArgument = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A run, a model folder, an installed encoder such as starter, or a hub name.",
        autocompletion=complete_model,
    ),
]


@dataclass(frozen=True)
class Loading:
    """How a command loads its model, by the flags that :func:`model_flags` gives it."""

    pooling: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Row pooler instead of the model's own: cls, mean, …"),
    ] = None
    max_length: Annotated[
        int | None,
        typer.Option(metavar="N", help="Longest text in tokens (default: the model's own limit)."),
    ] = None
    prompt: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|TEXT",
            help="Text before every text, or the name of one of the model's prompts "
            "(default: the model's own).",
        ),
    ] = None
    truncate_dim: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Keep the first N numbers of each vector (default: the model's).",
        ),
    ] = None
    device: Annotated[
        str, typer.Option(metavar="NAME", help="cuda, mps, cpu, or auto for the best available.")
    ] = "auto"
    precision: Annotated[
        str,
        typer.Option(metavar="NAME", help="Precision: fp32, bf16, int8 (on a processor), or auto."),
    ] = "fp32"
    batch_tokens: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Tokens per call of the encoder, approximately. By default 1,024 on a CPU in "
            "fp32, 8,192 elsewhere.",
        ),
    ] = None

    def check(self, name: str, registry: Registry) -> None:
        """Call :func:`check_model`."""
        check_model(name, registry, pooling=self.pooling, max_length=self.max_length)

    def load(self, name: str, registry: Registry) -> SentenceModel:
        """Load a model, checked first, in every process of the command."""
        self.check(name, registry)
        sizes = _trained_sizes(name) if self.truncate_dim else []
        if sizes and self.truncate_dim not in sizes:
            listed = ", ".join(map(str, sizes))
            warn(f"{name} was trained for vectors cut to {listed}, not to {self.truncate_dim}")
        options = {key: value for key, value in asdict(self).items() if key != "batch_tokens"}
        try:
            with spinner(f"loading {name}"), libraries_quiet():
                if helpers():
                    return load_in_all(name, options)
                from cse_cli.models.saved_model import load

                loaded = load(name, registry, **options)
        except CseError as error:
            raise _as_flags(error) from None
        if loaded.read_by:
            echo_err(f"{name}: read by {loaded.read_by}")
        return loaded


def model_flags(command: Command) -> Command:
    """Give a command the flags of :class:`Loading`, in place of its parameter ``loading``."""
    flags = parameters(get_type_hints(Loading, include_extras=True), Loading)
    return with_flags(command, "loading", flags, lambda given: Loading(**given))


def check_model(
    name: str, registry: Registry, *, pooling: str | None = None, max_length: int | None = None
) -> None:
    """Refuse what a look at names and JSON files shows to be wrong.

    Raises:
        CseError: If the model or pooler is unknown, or the length exceeds the model's.
    """
    from cse_core.records import RowPoolerSpec
    from cse_engine.compose.checks import installed_poolers
    from cse_engine.compose.models import Models

    if pooling is not None:
        rows = installed_poolers(registry, RowPoolerSpec)
        if pooling.rpartition("/")[2] not in rows:
            raise CseError(
                "unknown row pooler",
                where="--pooling",
                value=pooling,
                hint=did_you_mean(pooling, rows),
            )
    try:
        models = Models(registry)
        facts, _ = models.look(name)
        models.check(name)
    except CseError as error:
        raise _as_flags(error) from None
    if max_length is None:
        return
    if max_length < 3:
        raise CseError("must be at least 3: two special tokens and a word",
                       where="--max-length", value=max_length)  # fmt: skip
    if facts.positions is not None and max_length > facts.positions:
        raise CseError(
            f"the model has {facts.positions} positions",
            where="--max-length",
            value=max_length,
            hint=f"write at most {facts.positions}",
        )


def _trained_sizes(name: str) -> list[int]:
    """Return the Matryoshka sizes of the run that a model is of, empty where none are recorded."""
    from cse_core.files import RUN_FILE
    from cse_engine.compose.reading import read_toml

    folder = Path(name).expanduser()
    file = next((f for f in (folder / RUN_FILE, folder.parent / RUN_FILE) if f.is_file()), None)
    with suppress(
        CseError, AttributeError, TypeError, ValueError
    ):  # nobody needs the file to encode
        losses = [] if file is None else read_toml(file, str(file)).get("loss", [])
        return sorted({int(size) for loss in losses for size in loss.get("dimensions", ())})
    return []


def _as_flags(error: CseError) -> CseError:
    """Return an error that names this command's flags instead of a training's options."""
    where = _FLAGS.get(error.where or "", error.where)
    hint = error.hint.partition(", or add --set")[0] if error.hint else None
    return CseError(error.what, where=where, value=error.value, hint=hint)
