"""The backend of static embeddings: model2vec's folders and StaticEmbedding's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse_core.backend import TokenCount, TrainedModel
from cse_core.errors import CseError
from cse_core.files import read_json
from cse_core.model_card import Declared, checked_card
from cse_core.run_info import RunInfo

if TYPE_CHECKING:
    from torch import Tensor

    from cse_core.protocols import Encoder, MaskedHead
    from cse_static.encoder import StaticEncoder
    from cse_static.few_texts import FewTexts
    from cse_static.folders import Folder
    from cse_static.tokenizer import StaticTokenizer

_MODULES = ("StaticEmbedding", "Normalize")
_NO_MEANING = ("dropout", "train_layers", "gradient_checkpointing")
"""Options ``model.*`` about layers, of which there are none."""


class Static:
    """Reads, trains and saves tables of token vectors."""

    def find(self, name: str, installed: Sequence[str], *, weights: bool) -> Path | None:
        """Leave names of the hub to the backend of transformers, which fetches them."""
        return None

    def cached(self, name: str) -> Path | None:
        """Leave the hub's cache to the backend of transformers."""
        return None

    def takes(self, folder: Path) -> bool:
        """Take folders whose first module is a StaticEmbedding, and those of model2vec."""
        import json

        for root in (folder, folder / "model"):
            for file, key in (("modules.json", "type"), ("config.json", "model_type")):
                try:
                    content = json.loads((root / file).read_text(encoding="utf-8"))
                except (OSError, ValueError):
                    continue
                first = content[0] if isinstance(content, list) and content else content
                kind = str(first.get(key) if isinstance(first, dict) else "")
                if kind.rpartition(".")[2] in ("StaticEmbedding", "model2vec", "static-embedding"):
                    return True
        return False

    def facts(self, folder: Path, name: str) -> RunInfo:
        """Read the sizes of the table from its header."""
        from safetensors import SafetensorError, safe_open

        source = _folder(folder, name)
        size = None
        try:
            with safe_open(source.path / "model.safetensors", "numpy") as tensors:
                keys = {"embedding.weight", "embeddings"}.intersection(tensors.keys())
                for key in keys:
                    size = int(tensors.get_slice(key).get_shape()[-1])
        except (OSError, SafetensorError):
            pass  # loading says what is wrong
        text = _tokenizer_json(source)
        lowers = '"Lowercase"' in text or '"lowercase":true' in text.replace(" ", "")
        return RunInfo(
            model=name, family="static", hidden=size, embedding=size, layers=0, cased=not lowers,
            mask_token=False, end_token=False, causal=False,
        )  # fmt: skip

    def card(self, folder: Path, name: str) -> Declared:
        """Read the modules of sentence-transformers, or model2vec's configuration."""
        source = _folder(folder, name)
        kinds = [kind for kind, _ in source.modules]
        if wrong := [kind for kind in kinds if kind not in _MODULES]:
            hint = "encode with sentence-transformers"
            what = f"has a module {wrong[0]}, which cse does not have behind a static embedding"
            raise CseError(what, where="model.name", value=name, hint=hint)
        file = source.root / "config_sentence_transformers.json"
        settings = read_json(file, name, kind=dict) if file.is_file() else {}
        longest = source.config.get("max_length", 512) if source.model2vec else None
        named = ("prompts", "default_prompt_name", "truncate_dim", "similarity_fn_name")
        values = {key: settings[key] for key in named if settings.get(key) is not None}
        normalize = "Normalize" in kinds or bool(source.config.get("normalize"))
        values |= {"row": {"use": "mean"}, "max_length": longest, "normalize": normalize}
        return checked_card(values, file)

    def check(self, folder: Path, name: str) -> None:
        """Refuse a folder without a tokenizer."""
        _tokenizer_json(_folder(folder, name))

    def count_tokens(self, folder: Path, texts: Sequence[str]) -> list[TokenCount]:
        """Count the tokens of texts, and those that the vocabulary lacks."""
        from cse_static.tokenizer import StaticTokenizer

        file = _folder(folder, str(folder)).path / "tokenizer.json"
        tokenizer = StaticTokenizer.read(file)
        tokenizer.no_truncation()
        unknown: Any = tokenizer.token_to_id(_unknown_token(tokenizer) or "")
        rows = tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [TokenCount(len(row), len(row), row.ids.count(unknown)) for row in rows]

    def problems(self, options: Any, facts: RunInfo) -> Iterator[CseError | str]:
        """Refuse options about layers and attention."""
        for name in _NO_MEANING:
            if value := getattr(options, name):
                yield CseError("has no meaning for a static model, which has no layers",
                               where=f"model.{name}", value=value, hint="leave it out")  # fmt: skip
        if options.attention != "auto":
            yield CseError("has no meaning for a static model", where="model.attention",
                           value=options.attention, hint="leave it out")  # fmt: skip

    def load(
        self, folder: Path, options: Any, card: Declared, *, seed: int = 0
    ) -> tuple[StaticEncoder, StaticTokenizer]:
        """Load a table and its tokenizer; ``model.freeze_embeddings`` trains neither."""
        from cse_static.encoder import StaticEncoder, drawn

        source = _folder(folder, str(folder))
        vectors = source.table()
        if options.from_scratch:
            vectors = drawn(vectors, seed)
        encoder = StaticEncoder(vectors)
        encoder.requires_grad_(not options.freeze_embeddings)
        tokenizer = _tokenizer(source, options.prompt or "")
        if (size := tokenizer.hf.get_vocab_size()) > encoder.vocab_size:
            what = f"its tokenizer has {size} ids, and it embeds {encoder.vocab_size}"
            hint = "copy the tokenizer that belongs to the weights"
            raise CseError(what, where="model.name", value=str(folder), hint=hint)
        return encoder, tokenizer

    def few_texts(self, folder: Path, name: str, card: Declared) -> FewTexts | None:
        """Open the table for a few tokens."""
        from tokenizers import Tokenizer

        from cse_static.few_texts import FewTexts

        source = _folder(folder, name)
        try:
            hf = Tokenizer.from_str(_tokenizer_json(source))
        except Exception:  # loading it whole says what is wrong
            return None
        return FewTexts.open(source, hf, _left_out(source, hf))

    def load_tokenizer(self, folder: Path, card: Declared) -> StaticTokenizer:
        """Load the tokenizer alone."""
        return _tokenizer(_folder(folder, str(folder)))

    def load_masked_lm(
        self, folder: Path, card: Declared, *, seed: int = 0, from_scratch: bool = False
    ) -> tuple[Encoder, MaskedHead, StaticTokenizer]:
        """Refuse: a static model predicts no tokens.

        Raises:
            CseError: Always.
        """
        hint = "name a transformer with --model, or leave the loss out"
        raise CseError("a static model predicts no tokens", where="model.name",
                       value=str(folder), hint=hint)  # fmt: skip

    def head_weights(self, folder: Path, name: str) -> dict[str, Tensor]:
        """Give no weights: nothing but cse saves heads behind a static embedding."""
        return {}

    def save(self, trained: TrainedModel, folder: Path) -> str | None:
        """Write a folder that sentence-transformers loads with equal vectors, where it can.

        sentence-transformers counts unknown tokens, model2vec does not: a model that leaves them
        out is written for model2vec.
        """
        from cse_static.folders import MODULES, write

        tokenizer: Any = trained.tokenizer
        drops, other = tokenizer.unknown is not None, trained.other
        if trained.heads:
            other = other or "a head is behind a static embedding"
        if trained.pooling != "mean":
            other = other or f"rows are pooled by {trained.card['row']['use']}"
        if drops:
            other = other or "unknown tokens are left out, as in model2vec"
        (vectors,) = trained.model.state_dict().values()
        normalize = bool(trained.card["normalize"])
        write(folder, vectors, tokenizer.hf, normalize=normalize, model2vec=drops)
        if other is not None:
            (folder / MODULES).unlink()
            return other
        names = ("prompts", "default_prompt_name", "truncate_dim", "similarity_fn_name")
        settings = {name: trained.card[name] for name in names}
        text = json.dumps(settings | {"model_type": "SentenceTransformer"}, indent=2) + "\n"
        (folder / "config_sentence_transformers.json").write_text(text, encoding="utf-8")
        return None


def _folder(folder: Path, name: str) -> Folder:
    from cse_static.folders import Folder

    if (source := Folder.find(folder)) is None:
        what, hint = "is not the folder of a static model", "copy the whole model folder again"
        raise CseError(what, where="model.name", value=name, hint=hint)
    return source


def _tokenizer_json(folder: Folder) -> str:
    file = folder.path / "tokenizer.json"
    if not file.is_file():
        what, hint = "has no tokenizer.json", "copy the whole model folder again"
        raise CseError(what, where="model.name", value=str(folder.path), hint=hint)
    return file.read_text(encoding="utf-8")


def _tokenizer(folder: Folder, prompt: str = "") -> StaticTokenizer:
    from cse_static.tokenizer import StaticTokenizer

    hf = StaticTokenizer.read(folder.path / "tokenizer.json")
    return StaticTokenizer(hf, prompt, _left_out(folder, hf))


def _left_out(folder: Folder, hf: Any) -> int | None:
    token = _unknown_token(hf) if folder.model2vec else None
    return None if token is None else int(hf.token_to_id(token))


def _unknown_token(hf: Any) -> str | None:
    token = getattr(hf.model, "unk_token", None)
    return token if isinstance(token, str) else None
