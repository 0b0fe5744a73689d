"""The folders of static models: where the table and the tokenizer lie, and what they say."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse_core.errors import CseError
from cse_core.files import read_json

if TYPE_CHECKING:
    from tokenizers import Tokenizer as FastTokenizer
    from torch import Tensor

WEIGHTS, TOKENIZER, CONFIG, MODULES = (
    "model.safetensors", "tokenizer.json", "config.json", "modules.json",
)  # fmt: skip
MODEL2VEC, OWN = "model2vec", "static-embedding"
"""``model_type`` of the folders of model2vec, and of ours."""


@dataclass(frozen=True)
class Folder:
    """A folder of a static model.

    Attributes:
        path: Where the table and the tokenizer lie.
        root: Where ``config.json`` and ``modules.json`` lie.
        modules: Kinds and folders of sentence-transformers' modules; none without a list.
        config: What ``config.json`` holds.
    """

    path: Path
    root: Path
    modules: tuple[tuple[str, Path], ...]
    config: dict[str, Any]

    @property
    def model2vec(self) -> bool:
        """Check whether model2vec wrote it: it leaves unknown tokens out."""
        return self.config.get("model_type") == MODEL2VEC

    @staticmethod
    def find(folder: Path) -> Folder | None:
        """Look at a folder, or a run's ``model/``; None where no static model is in it."""
        for root in (folder, folder / "model"):
            config = _json(root / CONFIG, dict)
            listed = [module for module in _json(root / MODULES, list) if isinstance(module, dict)]
            modules = tuple(
                (str(module.get("type")).rpartition(".")[2], root / str(module.get("path", "")))
                for module in listed
            )
            static = modules[:1] and modules[0][0] == "StaticEmbedding"
            if static or config.get("model_type") in (MODEL2VEC, OWN):
                path = modules[0][1] if static else root
                return Folder(path, root, modules, config)
        return None

    def table(self) -> Tensor:
        """Read the token vectors ``[V, D]`` in fp32, those of model2vec by token id.

        Raises:
            CseError: If they are missing or damaged.
        """
        from cse_core.weights import read_tensors

        tensors = read_tensors(self.path / WEIGHTS)
        vectors = tensors.get("embedding.weight", tensors.get("embeddings"))
        if vectors is None or vectors.ndim != 2:
            what = f"{WEIGHTS} has no table of token vectors"
            hint = "copy the whole model folder again"
            raise CseError(what, where="model.name", value=str(self.path), hint=hint)
        vectors = vectors.float()
        if (mapping := tensors.get("mapping")) is not None:
            vectors = vectors[mapping.long()]
        if (weights := tensors.get("weights")) is not None:
            vectors = vectors * weights.float()[:, None]
        return vectors.contiguous()


def _json(file: Path, kind: type) -> Any:
    return read_json(file, str(file.parent), kind=kind) if file.is_file() else kind()


def write(
    folder: Path, vectors: Tensor, tokenizer: FastTokenizer, *, normalize: bool, model2vec: bool
) -> None:
    """Write a folder that sentence-transformers loads; of ``model2vec`` model2vec itself."""
    from safetensors.torch import save_file

    name = "embeddings" if model2vec else "embedding.weight"
    save_file({name: vectors.detach().cpu().contiguous()}, folder / WEIGHTS)
    tokenizer.no_truncation()
    tokenizer.save(str(folder / TOKENIZER))
    config = {"model_type": MODEL2VEC if model2vec else OWN, "hidden_dim": vectors.shape[1]}
    config |= {"architectures": ["StaticModel"], "normalize": normalize}
    kinds = ["StaticEmbedding", "Normalize"] if normalize else ["StaticEmbedding"]
    modules = [
        {
            "idx": place,
            "name": str(place),
            "path": f"{place}_{kind}" if place else "",
            "type": f"sentence_transformers.models.{kind}",
        }
        for place, kind in enumerate(kinds)
    ]
    if normalize:
        (folder / "1_Normalize").mkdir(exist_ok=True)
    for file, value in ((CONFIG, config), (MODULES, modules)):
        (folder / file).write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
