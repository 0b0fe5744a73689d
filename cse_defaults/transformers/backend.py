"""Models of Hugging Face's transformers, in its folders and those of sentence-transformers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse_core.backend import TokenCount, TrainedModel
from cse_core.errors import CseError, truncate_repr
from cse_core.files import read_json
from cse_core.model_card import Declared
from cse_core.run_info import RunInfo
from cse_defaults.transformers.declared import declared
from cse_defaults.transformers.hub import hub_folder
from cse_defaults.transformers.model_files import (
    DECODERS,
    DIRECTIONS,
    facts_of_files,
    model_folder,
    read_json_files,
)

if TYPE_CHECKING:
    from torch import Tensor

    from cse_defaults.transformers.encoder import PackedEncoder
    from cse_defaults.transformers.masked_lm import Head
    from cse_defaults.transformers.numpy_encoder import NumpyEncoder
    from cse_defaults.transformers.tokenizer import TextTokenizer

_SIZES = (
    *("hidden_size", "dim", "d_model", "n_embd", "embedding_size", "intermediate_size"),
    *("num_hidden_layers", "n_layers", "n_layer", "num_attention_heads", "n_heads", "n_head"),
    *("vocab_size", "max_position_embeddings", "n_positions"),
)
_LARGEST_SIZE, _MOST_LAYERS = 10**8, 1000
_UNUSABLE = ("t5", "mt5", "umt5", "xlnet")
"""Families whose encoders transformers loads with a decoder, or that read words in another way."""


_UNKNOWN = ("[UNK]", "<unk>")
_AT_ONCE = 10_000
"""Texts that are tokenised together."""


class Transformers:
    """The backend of transformers."""

    def find(self, name: str, installed: Sequence[str], *, weights: bool) -> Path | None:
        """Fetch a model of the hub, or its small files; without a network from the cache."""
        return hub_folder(name, installed, weights=weights)

    def cached(self, name: str) -> Path | None:
        """Look into the cache of the hub."""
        from huggingface_hub import try_to_load_from_cache

        config = try_to_load_from_cache(name, "config.json")
        return Path(config).parent if isinstance(config, str) else None

    def takes(self, folder: Path) -> bool:
        """Take every folder: what is wrong with one, transformers' own files say best."""
        return True

    def facts(self, folder: Path, name: str) -> RunInfo:
        """Read ``config.json`` and the tokenizer's files."""
        return facts_of_files(name, read_json_files(model_folder(folder, name), name))

    def card(self, folder: Path, name: str) -> Declared:
        """Read sentence-transformers' files, and the tokenizer's length."""
        return declared(folder, name)

    def check(self, folder: Path, name: str) -> None:
        """Refuse sizes of no encoder in ``config.json``, and models that are none."""
        config = read_json(model_folder(folder, name) / "config.json", name, kind=dict)
        for key in _SIZES:
            size = config.get(key)
            most = _MOST_LAYERS if "layer" in key else _LARGEST_SIZE
            if size is not None and (type(size) is not int or not 1 <= size <= most):
                raise CseError(
                    f"in its config.json {key} must be an integer from 1 to {most:,}, "
                    f"not {truncate_repr(size, 60)}",
                    where="model.name",
                    value=name,
                    hint="copy the config.json that belongs to the weights",
                )
        architectures = config.get("architectures")
        heads = [str(head) for head in architectures] if isinstance(architectures, list) else []
        what, hint = None, "name a text encoder such as bert-base-uncased"
        if (family := config.get("model_type")) in _UNUSABLE and not config.get(
            "is_encoder_decoder"
        ):
            what = f"of the family {family}, which cse does not load"
            hint = "encode with sentence-transformers, or train another encoder, such as BERT's"
        elif config.get("is_encoder_decoder") is True:
            what = "an encoder with a decoder"
        elif isinstance(config.get("text_config"), dict):
            what = "a model of texts and something else"
        if what is not None:
            what = f"is {what}: {', '.join(heads) or config.get('model_type')}"
            raise CseError(what, where="model.name", value=name, hint=hint)

    def count_tokens(self, folder: Path, texts: Sequence[str]) -> list[TokenCount]:
        """Count by ``tokenizer.json``."""
        from tokenizers import Tokenizer

        file = model_folder(folder, str(folder)) / "tokenizer.json"
        if not file.is_file():
            hint = "save its tokenizer with save_pretrained"
            raise CseError("the model has no tokenizer.json", hint=hint)
        try:
            tokenizer = Tokenizer.from_file(str(file))
        except Exception as error:  # the library raises nothing more exact
            what = f"tokenizer.json cannot be read: {error}"
            raise CseError(what, hint="save the tokenizer again") from None
        tokenizer.no_truncation()
        tokenizer.no_padding()
        counts: list[TokenCount] = []
        for start in range(0, len(texts), _AT_ONCE):
            for row in tokenizer.encode_batch(list(texts[start : start + _AT_ONCE])):
                unknown = sum(token in _UNKNOWN for token in row.tokens)
                content = row.special_tokens_mask.count(0)
                counts.append(TokenCount(len(row.ids), content, unknown))
        return counts

    def problems(self, options: Any, facts: RunInfo) -> Iterator[CseError | str]:
        """Refuse a direction of attention where it has no meaning."""
        family = facts.family
        if options.attention in DIRECTIONS and family not in (None, *DECODERS):
            names = ", ".join(DECODERS)
            what = f"has no meaning for {family}: the families {names} read in either way"
            hint = "leave it out, or name a decoder with --model"
            yield CseError(what, where="model.attention", value=options.attention, hint=hint)

    def load(
        self, folder: Path, options: Any, card: Declared, *, seed: int = 0
    ) -> tuple[PackedEncoder, TextTokenizer]:
        """Load an encoder, packed where its attention allows it, and its fast tokenizer."""
        from cse_defaults.transformers.architecture import embedding_layer, freeze_all_but
        from cse_defaults.transformers.encoder import PackedEncoder

        encoder, tokenizer = PackedEncoder.load_with_tokenizer(
            folder,
            prompt=options.prompt or "",
            lower_case=card.do_lower_case,
            from_scratch=options.from_scratch,
            dropout=options.dropout,
            attention=options.attention,
            seed=seed,
        )
        encoder.recompute = options.gradient_checkpointing
        if options.train_layers:
            freeze_all_but(encoder.model, options.train_layers)
        if options.freeze_embeddings:
            embedding_layer(encoder.model).requires_grad_(False)
        return encoder, tokenizer

    def few_texts(self, folder: Path, name: str, card: Declared) -> NumpyEncoder | None:
        """Open a BERT or RoBERTa for NumPy."""
        from cse_defaults.transformers.numpy_encoder import NumpyEncoder

        return NumpyEncoder.open(folder, name, card)

    def load_tokenizer(self, folder: Path, card: Declared) -> TextTokenizer:
        """Load a fast tokenizer."""
        from cse_defaults.transformers.pretrained import load_tokenizer
        from cse_defaults.transformers.tokenizer import TextTokenizer

        return TextTokenizer(load_tokenizer(folder, lower_case=card.do_lower_case))

    def load_masked_lm(
        self, folder: Path, card: Declared, *, seed: int = 0, from_scratch: bool = False
    ) -> tuple[PackedEncoder, Head, TextTokenizer]:
        """Load an encoder and transformers' head for masked tokens, or the next one."""
        from cse_defaults.transformers.masked_lm import load_masked_lm

        how = {"seed": seed, "from_scratch": from_scratch}
        return load_masked_lm(folder, lower_case=card.do_lower_case, **how)

    def head_weights(self, folder: Path, name: str) -> dict[str, Tensor]:
        """Read the weights of a Dense module of sentence-transformers, by the names of ``mlp``."""
        from cse_core.weights import read_tensors

        file = folder / name / "model.safetensors"
        if file.with_name("pytorch_model.bin").exists() and not file.exists():
            what = f"the weights of its head {name} are pickled, and pickles are never loaded"
            hint = "save it with a newer sentence-transformers, which writes model.safetensors"
            raise CseError(what, where="model.name", value=str(folder), hint=hint)
        tensors = read_tensors(file).items()
        start = "linear."
        return {f"stages.0.{k[len(start) :]}": v for k, v in tensors if k.startswith(start)}

    def save(self, trained: TrainedModel, folder: Path) -> str | None:
        """Write a folder that transformers loads, and sentence-transformers where it can."""
        from cse_defaults.transformers.save import save

        return save(trained, folder)
