"""Translating texts with a sequence-to-sequence model of Hugging Face."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForSeq2SeqLM, PreTrainedModel
from transformers import PreTrainedTokenizerBase as Tokenizer

from cse_cli.terminal.quiet import libraries_quiet
from cse_core.encoders.pretrained import (
    WHERE,
    check_fit,
    check_weights,
    checked_name,
    load_tokenizer,
    translate_load_errors,
)
from cse_core.errors import CseError, did_you_mean
from cse_core.runtime.hub import is_hub_reachable


@dataclass(frozen=True, kw_only=True)
class TranslationOptions:
    """How texts are translated; equal options give equal translations.

    Attributes:
        model: A folder, or a name on the hub.
        source_language: Code of the texts' language, where the model knows several.
        target_language: Code of the target language, where the model knows several.
        prefix: Put before each text: T5's task, or the ``>>fra<<`` of a Marian model.
        batch_size: Texts translated at once.
        beams: Beams of the search; 1 is greedy.
        max_length: Longest text in tokens; longer ones are cut.
    """

    model: str
    source_language: str | None = None
    target_language: str | None = None
    prefix: str = ""
    batch_size: int = 32
    beams: int = 4
    max_length: int = 256


class Translator:
    """Translates texts without drawing anything at random.

    Args:
        options: The model and its settings.
        device: Where it runs.

    Attributes:
        cut: Texts so far that were longer than the model takes.

    Raises:
        CseError: If the model cannot be loaded, or does not know a language.
    """

    def __init__(self, options: TranslationOptions, device: torch.device) -> None:
        self.options = options
        self.device = device
        model, self.tokenizer = load_translator(options.model)
        self.model: Any = model.to(device).eval()
        positions = getattr(model.config, "max_position_embeddings", None)
        self._most = min(limit for limit in (self.tokenizer.model_max_length, positions) if limit)
        self.longest = min(options.max_length, self._most)
        self._languages = _language_settings(self.tokenizer, options)
        self.cut = 0

    def translate(
        self, texts: Sequence[str], progress: Callable[[int], None] = lambda done: None
    ) -> list[str]:
        """Return the translation of each text, in their order.

        Texts of like length share a batch, so that little is padded.

        Args:
            texts: The texts.
            progress: Hears how many are done.
        """
        tokens = self._tokens(texts)
        order = sorted(range(len(texts)), key=lambda row: -len(tokens[row]))
        found = [""] * len(texts)
        for start in range(0, len(order), self.options.batch_size):
            rows = order[start : start + self.options.batch_size]
            for row, text in zip(rows, self._batch([tokens[row] for row in rows]), strict=True):
                found[row] = text
            progress(start + len(rows))
        return found

    def _tokens(self, texts: Sequence[str]) -> list[list[int]]:
        given = [self.options.prefix + text for text in texts]
        tokens: list[list[int]] = self.tokenizer(given)["input_ids"]
        for row, ids in enumerate(tokens):
            if len(ids) > self.longest:
                self.cut += 1
                short = self.tokenizer(given[row], truncation=True, max_length=self.longest)
                tokens[row] = short["input_ids"]
        return tokens

    def _batch(self, tokens: list[list[int]]) -> list[str]:
        longest = max(map(len, tokens))
        padded = self.tokenizer.pad({"input_ids": tokens}, return_tensors="pt").to(self.device)
        with torch.inference_mode():
            made = self.model.generate(
                input_ids=padded["input_ids"],
                attention_mask=padded["attention_mask"],
                do_sample=False,
                num_beams=self.options.beams,
                # A translation is seldom twice as long; a model that never ends is stopped.
                max_new_tokens=min(2 * longest + 10, self._most - 1),
                **self._languages,
            )
        read = self.tokenizer.batch_decode(made, skip_special_tokens=True)
        return [text.strip() for text in read]


def _language_settings(tokenizer: Any, options: TranslationOptions) -> dict[str, int]:
    """Tell the tokenizer the source language; return what makes the model write the target's."""
    flags = {
        "--source-language": options.source_language,
        "--target-language": options.target_language,
    }
    if not hasattr(tokenizer, "src_lang"):
        for flag, code in flags.items():
            if code is not None:
                raise CseError(
                    "this model has no language codes",
                    where=flag,
                    value=code,
                    hint='leave it out; with T5 use --prefix "translate English to German: ", '
                    'Marian models of several languages by --prefix ">>deu<< "',
                )
        return {}
    numbers = {flag: _language_token(tokenizer, flag, code) for flag, code in flags.items()}
    tokenizer.src_lang = options.source_language
    # The first mBART begins the translation with its language, later models put it second.
    first = type(tokenizer).__name__.startswith("MBartTokenizer")
    key = "decoder_start_token_id" if first else "forced_bos_token_id"
    return {key: numbers["--target-language"]}


def _language_token(tokenizer: Any, flag: str, code: str | None) -> int:
    known = {token.strip("_"): number for token, number in tokenizer.get_added_vocab().items()}
    codes = sorted(known.keys() - {token.strip("_") for token in _usual_tokens(tokenizer)})
    if code in codes:
        return int(known[code])
    shown = ", ".join(codes[:8]) + (", …" if len(codes) > 8 else "")
    if code is None:
        raise CseError(
            "must be given: this model translates between several languages",
            where=flag,
            hint=f"one of {shown}",
        )
    raise CseError(
        "the model does not know this language", where=flag, value=code,
        hint=did_you_mean(code, codes) if len(codes) <= 12 else _close(code, codes, shown),
    )  # fmt: skip


def _close(code: str, codes: Sequence[str], shown: str) -> str:
    hint = did_you_mean(code, codes)
    return hint if hint.startswith("did") else f"one of {shown}"


def _usual_tokens(tokenizer: Any) -> list[str]:
    names = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
    found = (getattr(tokenizer, f"{name}_token", None) for name in names)
    return [str(token) for token in found if token]


def load_translator(path_or_name: str | Path) -> tuple[PreTrainedModel, Tokenizer]:
    """Load a sequence-to-sequence model in fp32 and its tokenizer.

    Args:
        path_or_name: A folder, or a name on the hub.

    Raises:
        CseError: As ``load_model`` and ``load_tokenizer``, or it is not such a model.
    """
    name = checked_name(path_or_name)
    local = Path(name).is_dir()
    with translate_load_errors(name):
        offline = local or not is_hub_reachable()
        config = AutoConfig.from_pretrained(name, trust_remote_code=False, local_files_only=offline)
        if not config.is_encoder_decoder:
            raise CseError(
                f"{config.model_type} is not a sequence-to-sequence model",
                where=WHERE,
                value=name,
                hint="name a translation model, such as one of Marian, T5, mBART, M2M100 or NLLB",
            )
        if local:
            check_weights(Path(name))
        with libraries_quiet():
            model, report = AutoModelForSeq2SeqLM.from_pretrained(
                name,
                config=config,
                dtype=torch.float32,
                use_safetensors=True,
                trust_remote_code=False,
                local_files_only=offline,
                ignore_mismatched_sizes=True,
                output_loading_info=True,
            )
    check_fit(report, name)
    return model, load_tokenizer(name)
