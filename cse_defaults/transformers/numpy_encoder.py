"""BERT's forward pass in NumPy, for the few tokens of a query: importing torch takes longer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from cse_core.backend import TokenStates
from cse_core.model_card import Declared
from cse_defaults.transformers.model_files import facts_of_files, model_folder, read_json_files

Array = NDArray[np.float32]
FAMILIES = ("bert", "roberta", "xlm-roberta", "camembert")
_WEIGHTS = "model.safetensors"
_LAYER = "encoder.layer.{}."
_ERF = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)


def _erf(x: Array) -> Array:
    """Approximate the error function to 1.5e-7 (Abramowitz and Stegun, 7.1.26)."""
    t = 1 / (1 + 0.3275911 * np.abs(x))
    series = np.zeros_like(t)
    for factor in reversed(_ERF):
        series = (series + factor) * t
    return np.asarray(np.sign(x) * (1 - series * np.exp(-x * x)), np.float32)


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "gelu": lambda x: np.asarray(x * (1 + _erf(x * np.float32(0.5**0.5))) / 2, np.float32),
    "relu": lambda x: np.maximum(x, 0),
}


@dataclass(frozen=True)
class NumpyEncoder:
    """The states of a BERT, on a processor in fp32; :meth:`open` makes it.

    Attributes:
        max_positions: Tokens of its longest row.
    """

    config: dict[str, Any]
    tokenizer: Any
    max_positions: int
    _tensors: Any
    _prefix: str
    _read: dict[str, Array] = field(default_factory=dict)

    @staticmethod
    def open(folder: Path, name: str, card: Declared) -> NumpyEncoder | None:
        """Open a model's folder; None where its family or its files are not understood here."""
        from tokenizers import Tokenizer

        inner = model_folder(folder, name)
        files = read_json_files(inner, name)
        config, settings = files.get("config.json", {}), files.get("tokenizer_config.json", {})
        positions = facts_of_files(name, files).positions
        understood = (
            config.get("model_type") in FAMILIES
            and config.get("hidden_act") in ACTIVATIONS
            and config.get("position_embedding_type", "absolute") == "absolute"
            and not card.do_lower_case
            and not settings.get("split_special_tokens")
            and settings.get("truncation_side", "right") == "right"
        )
        if not understood or positions is None:
            return None
        try:
            tensors = safe_open(inner / _WEIGHTS, "numpy")
            tokenizer = Tokenizer.from_file(str(inner / "tokenizer.json"))
        except Exception:  # whatever is wrong with the files, loading them with torch says it
            return None
        tokenizer.no_padding()
        table = "embeddings.word_embeddings.weight"
        names: list[str] = tensors.keys()  # type: ignore[no-untyped-call]
        prefix = next((name[: -len(table)] for name in names if name.endswith(table)), None)
        if prefix is None:
            return None
        return NumpyEncoder(config, tokenizer, positions, tensors, prefix)

    def __call__(self, texts: Sequence[str], longest: int, prompt: str) -> TokenStates | None:
        """Return the states of texts cut to ``longest`` tokens; None where something lacks."""
        whole, plain = (self.tokenizer.encode("a", add_special_tokens=add) for add in (True, False))
        start = whole.ids.index(plain.ids[0]) if plain.ids else 0
        before, after = whole.ids[:start], whole.ids[start + len(plain.ids) :]
        room = longest - len(before) - len(after)
        self.tokenizer.enable_truncation(longest)
        rows = self.tokenizer.encode_batch(
            [prompt + text for text in texts], add_special_tokens=False
        )
        unknown = {token for token in ("[UNK]", "<unk>") if self.tokenizer.token_to_id(token)}
        try:
            states = [self._states([*before, *row.ids[:room], *after]) for row in rows]
        except (SafetensorError, KeyError, TypeError, ValueError):
            return None
        return TokenStates(
            states,
            cut=sum(len(row.ids) > room for row in rows),
            tokens=sum(len(row.ids) for row in rows),
            unknown=sum(token in unknown for row in rows for token in row.tokens),
        )

    def _get(self, name: str) -> Array:
        if name not in self._read:
            tensor = self._tensors.get_tensor(self._prefix + name)
            self._read[name] = np.asarray(tensor, np.float32)
        return self._read[name]

    def _rows(self, name: str, places: Sequence[int]) -> Array:
        table = self._tensors.get_slice(self._prefix + name)
        rows = [table[place : place + 1] for place in places]
        return np.asarray(np.concatenate(rows), np.float32)

    def _states(self, ids: Sequence[int]) -> Array:
        """Return ``[T, H]`` last states of a row of ids."""
        first = 0 if self.config["model_type"] == "bert" else self.config.get("pad_token_id", 1) + 1
        table = "embeddings.{}_embeddings.weight"
        states = self._rows(table.format("word"), ids)
        states = states + self._rows(table.format("position"), range(first, first + len(ids)))
        states = self._norm(states + self._rows(table.format("token_type"), [0]), "embeddings.")
        for layer in range(self.config["num_hidden_layers"]):
            states = self._layer(states, _LAYER.format(layer))
        return states

    def _layer(self, states: Array, layer: str) -> Array:
        heads, (length, width) = self.config["num_attention_heads"], states.shape
        query, key, value = (
            self._linear(states, f"{layer}attention.self.{name}").reshape(length, heads, -1)
            for name in ("query", "key", "value")
        )
        scores = np.einsum("qhd,khd->hqk", query, key) / np.sqrt(np.float32(width // heads))
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        mixed = np.einsum("hqk,khd->qhd", shares, value).reshape(length, width)
        mixed = self._linear(mixed, f"{layer}attention.output.dense")
        states = self._norm(states + mixed, f"{layer}attention.output.")
        inner = ACTIVATIONS[self.config["hidden_act"]](
            self._linear(states, f"{layer}intermediate.dense")
        )
        return self._norm(states + self._linear(inner, f"{layer}output.dense"), f"{layer}output.")

    def _linear(self, states: Array, name: str) -> Array:
        return states @ self._get(f"{name}.weight").T + self._get(f"{name}.bias")

    def _norm(self, states: Array, of: str) -> Array:
        apart = states - states.mean(axis=-1, keepdims=True)
        scale = np.square(apart).mean(axis=-1, keepdims=True) + self.config["layer_norm_eps"]
        weight, bias = (self._get(f"{of}LayerNorm.{name}") for name in ("weight", "bias"))
        return np.asarray(apart / np.sqrt(scale) * weight + bias, np.float32)
