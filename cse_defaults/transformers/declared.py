"""What a model's folder says of how it encodes: in cse's own file, or in sentence-transformers'."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, Field, ValidationError

from cse_core.errors import CseError, did_you_mean
from cse_core.files import MANIFEST, SUMS, file_sum
from cse_core.suites import ROLE_PROMPTS, Role
from cse_defaults.transformers.model_files import model_folder, read_json, read_modules

Said = TypeVar("Said", bound=BaseModel)
AGAIN = "copy the whole model folder again"
ACTIVATIONS = {
    "tanh": "Tanh", "relu": "ReLU", "gelu": "GELU", "none": "Identity", "sigmoid": "Sigmoid",
    "silu": "SiLU", "elu": "ELU", "leaky-relu": "LeakyReLU", "softplus": "Softplus",
}  # fmt: skip
"""Functions behind a linear layer, and their classes in torch."""
_NAME = re.compile(r"\w[\w-]*", re.ASCII)
_FLAG = "pooling_mode_"
_ARGUMENTS = (
    *("model_args", "model_kwargs", "config_args", "config_kwargs", "tokenizer_args"),
    *("processor_kwargs", "processing_kwargs", "query_length", "document_length"),
)
"""What sentence-transformers gives to its encoder and tokenizer."""
_HARMLESS = (
    *("add_pooling_layer", "dtype", "torch_dtype", "attn_implementation", "trust_remote_code"),
    *("use_fast", "padding_side", "padding", "truncation", "clean_up_tokenization_spaces"),
    *("use_safetensors", "low_cpu_mem_usage", "device_map", "reference_compile", "revision"),
    *("cache_dir", "local_files_only", "token"),
)
_MODES = {"cls": "cls", "mean": "mean", "lasttoken": "last-token"}
"""Modes of sentence-transformers' pooling, and the row poolers that are equal to them."""


def _of_this_version(number: object) -> object:
    if number != 1 or number is True:
        raise ValueError("another version of cse wrote it: update cse-toolkit")
    return number


class Stage(BaseModel):
    """A row pooler, head or slicer, as ``cse.json`` names it."""

    use: str
    name: str = ""
    distribution: str | None = None
    options: dict[str, Any] = {}


SimilarityName = Literal["cosine", "dot", "euclidean", "manhattan"]


class Declared(BaseModel):
    """How a model encodes, with sentence-transformers' names where it has them.

    Attributes:
        row: Its row pooler; None where nothing says one, and it is the mean.
        max_length: Tokens of the longest row; None where nothing says it.
        normalize: Whether vectors are scaled to length 1, before they are cut to ``truncate_dim``.
        do_lower_case: Whether texts are lower-cased before the tokenizer has them.
        include_prompt: Whether the prompt's tokens are pooled; the row pooler ``mean`` says it in
            its options too.
    """

    format: Annotated[object, AfterValidator(_of_this_version)] = 1
    row: Stage | None = None
    heads: tuple[Stage, ...] = ()
    slice: Stage | None = None
    max_length: Annotated[int, Field(ge=2, le=10**9, strict=True)] | None = None
    prompts: dict[str, str] = {}
    default_prompt_name: str | None = None
    include_prompt: bool = True
    normalize: bool = False
    truncate_dim: Annotated[int, Field(ge=1, le=2**16, strict=True)] | None = None
    similarity_fn_name: SimilarityName | None = None
    do_lower_case: bool = False
    model_type: Literal["SentenceTransformer"] = "SentenceTransformer"
    transformer_task: Literal["feature-extraction"] = "feature-extraction"

    def prompt(
        self, given: str | None = None, where: str = "model.prompt", *, typed: bool = True
    ) -> str:
        """Return the text of a prompt by its name, any other text as it is, by default its own.

        A word alone that is ``typed``, and not recorded of a run, is a name: without a space or a
        sign behind it, it would be glued to each text.
        """
        name = self.default_prompt_name if given is None else given
        text = "" if name is None else self.prompts.get(name, name)
        if typed and _NAME.fullmatch(text) and text not in self.prompts.values():
            what = "is the name of a prompt, and the model has none"
            hint = f"write '{text}: ' for a text"
            if self.prompts:
                what = "is none of the model's prompts"
                hint += f"; {did_you_mean(text, self.prompts)}"
            raise CseError(what, where=where, value=text, hint=hint)
        if text and not self.include_prompt and self.row and self.row.use == "cls":
            what = "its pooling leaves out the tokens of the prompt, which cls cannot do"
            hint = "encode with sentence-transformers, or without a prompt: --prompt ''"
            raise CseError(what, where=where, value=text, hint=hint)
        return text

    @property
    def similarity(self) -> SimilarityName:
        """Return what its vectors are compared by."""
        return self.similarity_fn_name or "cosine"

    def role_prompts(self) -> dict[Role, str]:
        """Return the prompts of queries and of documents, where it has some."""
        named = ((role, name) for role, names in ROLE_PROMPTS.items() for name in reversed(names))
        return {role: self.prompt(name) for role, name in named if name in self.prompts}

    def inference(self) -> dict[str, Any]:
        """Return what it says of the vectors after training, as options of a recipe."""
        found = self.model_dump(include={"max_length", "normalize", "truncate_dim"})
        found["slice"] = self.slice is not None
        return {name: value for name, value in found.items() if value}

    def poolers(self) -> list[dict[str, Any]]:
        """Return its row pooler, heads and slicer as items of a recipe, with its own weights."""
        stages = [self.row or Stage(use="mean"), *self.heads, self.slice]
        return [
            {
                "use": f"{stage.distribution}/{stage.use}" if stage.distribution else stage.use,
                **stage.options,
                **{"name": stage.name or stage.use, "weights": "model"},
            }
            for stage in stages
            if stage is not None
        ]


class _Manifest(Declared):
    row: Stage
    max_length: Annotated[int, Field(ge=2, le=10**9, strict=True)]


class _Dense(BaseModel):
    out_features: int = Field(ge=1, le=2**16, strict=True)
    bias: bool = True
    activation_function: str = "torch.nn.modules.activation.Tanh"
    module_input_name: Literal["sentence_embedding"] = "sentence_embedding"
    module_output_name: Literal["sentence_embedding", None] = None
    use_residual: Literal[False] = False


def declared(path: Path, name: str) -> Declared:
    """Return what a model's folder says of how it encodes.

    ``cse.json`` goes before sentence-transformers' files, unless that has saved over a model of
    cse. A folder with neither has its tokenizer's length.
    """
    encoder = model_folder(path, name)
    roots = (path, path / "model", encoder)
    root = next((each for each in roots if (each / "modules.json").is_file()), encoder)
    modules = read_modules(root, name)
    own = is_as_saved(encoder, name)
    modules = [] if own else modules
    kind_of_file: type[Declared] = _Manifest if own else Declared
    file = encoder / MANIFEST if own else root / "config_sentence_transformers.json"
    values: dict[str, Any] = {} if own else {"max_length": _length(encoder, name, bool(modules))}
    files = [file, *sorted(encoder.glob("sentence_*_config.json"))] if modules else [file] * own
    for each in files:
        values |= read_json(each, name, kind=dict) if each.is_file() else {}
        _check_arguments(values, each)
    if isinstance(prompts := values.get("prompts") or {}, dict):
        # sentence-transformers fills prompts that have no text with an empty one.
        values["prompts"] = {key: text or "" for key, text in prompts.items()}
    for place, (kind, folder) in enumerate(modules):
        config = folder / "config.json"
        if kind == "Pooling":
            values |= _pooling(read_json(config, name, kind=dict), name)
        elif kind == "Dense":
            values.setdefault("heads", []).append(_dense(config, name))
        elif kind == "Normalize":
            values["normalize"] = True
            if {"Pooling", "Dense"} & {after for after, _ in modules[place:]}:
                what = "has a Normalize module before its last layer, which cse cannot do"
                hint = "encode with sentence-transformers"
                raise CseError(what, where="model.name", value=name, hint=hint)
    found = _checked(kind_of_file, values, file)
    if (default := found.default_prompt_name) is not None and default not in found.prompts:
        what = f"its default_prompt_name {default!r} is none of its prompts"
        raise CseError(what, where=str(file), hint=AGAIN)
    return found


def _checked(kind: type[Said], values: dict[str, Any], file: Path) -> Said:
    """Return what a file says, checked; what is malformed raises a ``CseError``."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        what, hint = f"is malformed: {place + ': ' if place else ''}{first['msg']}", AGAIN
        if first["type"] == "literal_error":
            what = f"says {place} {first['input']!r}, which cse does not have"
            hint = "encode with sentence-transformers"
        raise CseError(what, where=str(file), value=first["input"], hint=hint) from None


def _check_arguments(values: dict[str, Any], file: Path) -> None:
    """Refuse arguments by which sentence-transformers computes other vectors."""
    for key in _ARGUMENTS:
        given = values.get(key) or {}
        named = given if isinstance(given, dict) else {"": given}
        text = named.get("text")  # of processing_kwargs, by kind of input
        named = text if isinstance(text, dict) else named
        for name, value in named.items():
            if name not in _HARMLESS and value not in (None, {}):
                what = f"says {key + ('.' if name else '')}{name}, which cse does not have"
                hint = "encode with sentence-transformers"
                raise CseError(what, where=str(file), value=value, hint=hint)


def is_as_saved(folder: Path, name: str) -> bool:
    """Tell whether cse saved a model, and sentence-transformers has not saved over it."""
    if not (folder / MANIFEST).is_file() or not (folder / "modules.json").is_file():
        return (folder / MANIFEST).is_file()
    sums = read_json(folder / SUMS, name, kind=dict) if (folder / SUMS).is_file() else {}
    files = {folder / each: kept for each, kept in sums.items() if each.endswith(".json")}
    return bool(files) and all(
        file.is_file() and file_sum(file) == kept for file, kept in files.items()
    )


def _length(encoder: Path, name: str, saved: bool) -> int | None:
    """Return how many tokens a row has, from where sentence-transformers keeps it.

    Older versions keep it in a file of their own, newer ones (6.2 does) with the tokenizer.
    """
    files = [*sorted(encoder.glob("sentence_*_config.json"))] if saved else []
    for path in (*files, encoder / "tokenizer_config.json"):
        key = "max_seq_length" if path in files else "model_max_length"
        length = read_json(path, name, kind=dict).get(key) if path.is_file() else None
        if isinstance(length, int | float) and length >= 2:
            return int(min(length, 10**9))
        if length is not None:
            what = f"{key} must be a number of tokens of at least 2"
            raise CseError(what, where=str(path), value=length, hint=AGAIN)
    return None


def _pooling(config: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the row pooler of a Pooling module."""
    modes = config.get("pooling_mode")
    if modes is None:  # before version 6 a flag for each: pooling_mode_mean_tokens
        flags = [key.removeprefix(_FLAG) for key in config if key.startswith(_FLAG) and config[key]]
        modes = [re.sub("_tokens?$", "", flag) for flag in flags] or ["mean"]
    modes = modes if isinstance(modes, list) else [modes]
    if len(modes) != 1 or modes[0] not in _MODES:
        what = f"pools its tokens by {' and '.join(map(str, modes))}, which cse does not have"
        hint = "name one of cse's with --pooling"
        raise CseError(what, where="model.name", value=name, hint=hint)
    whole = config.get("include_prompt", True)
    use, options = _MODES[modes[0]], {}
    if use == "mean" and whole is False:
        options = {"include_prompt": False}
    elif use == "last-token":
        options = {"end": False}  # what is last is for its tokenizer to say
    return {"row": {"use": use, "options": options}, "include_prompt": whole}


def _dense(file: Path, name: str) -> dict[str, Any]:
    """Return the head of a Dense module."""
    dense = _checked(_Dense, read_json(file, name, kind=dict), file)
    kind = dense.activation_function.rpartition(".")[2]
    names = {torch: own for own, torch in ACTIVATIONS.items()}
    if kind not in names or not dense.activation_function.startswith("torch.nn."):
        what, hint = "names a function that cse does not have", "encode with sentence-transformers"
        raise CseError(what, where=str(file), value=dense.activation_function, hint=hint)
    options = {"dimension": dense.out_features, "activation": names[kind], "bias": dense.bias}
    return {"use": "mlp", "name": file.parent.name, "options": {**options, "keep": "always"}}
