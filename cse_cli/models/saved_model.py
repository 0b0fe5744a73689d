"""Load a saved, plain or sentence-transformers model and encode texts with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cse_core.errors import CseError
from cse_core.files import MEMBERS
from cse_core.model_card import SimilarityName
from cse_core.records import BackendSpec
from cse_core.registry.plugin_info import TOOLKIT
from cse_core.registry.registry import Registry
from cse_core.suites import Role
from cse_engine.compose.compose import model_alone
from cse_engine.compose.models import Models
from cse_engine.runtime.device import Precision, resolve_device, resolve_precision
from cse_engine.runtime.int8 import INT8, to_int8
from cse_engine.step.part_factory import Making, make_sentence_encoder
from cse_engine.step.sentence_encoder import SentenceEncoder


@dataclass
class SentenceModel:
    """A model that encodes texts, its name as asked for, and its pooling and prompt in words.

    ``read_by`` names the plugin that reads its folder, where that is not the toolkit;
    ``similarity`` is what its folder says that its vectors are compared by, and ``prompts`` what
    it puts before queries and documents.
    """

    sentence_encoder: SentenceEncoder
    name: str
    description: str
    device: torch.device
    precision: Precision
    read_by: str = ""
    similarity: SimilarityName = "cosine"
    prompts: Mapping[Role, str] = field(default_factory=dict)

    def with_role(self, role: Role) -> SentenceModel:
        """Return the model as it encodes queries, or documents."""
        tokenizer = self.sentence_encoder.tokenizer.with_prompt(self.prompts.get(role))
        encoder = replace(self.sentence_encoder, tokenizer=tokenizer, role=role)
        return replace(self, sentence_encoder=encoder)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return ``[N, D]`` vectors."""
        with self.precision.autocast():
            return self.sentence_encoder.encode(texts, self.device).numpy()


def load(
    name: str,
    registry: Registry,
    *,
    pooling: str | None = None,
    max_length: int | None = None,
    prompt: str | None = None,
    truncate_dim: int | None = None,
    device: str = "auto",
    precision: str = "fp32",
) -> SentenceModel:
    """Load a model that encodes as its folder says.

    ``name`` is a run's or model's folder, an installed encoder or a model of the hub; ``pooling``
    (without heads), ``max_length``, ``prompt`` (a name of its prompts, or a text) and
    ``truncate_dim`` replace what the model says; ``device`` and ``precision`` are as in ``train``,
    and ``int8`` has linear layers of 8 bits, on a processor.

    Raises:
        CseError: If the model is missing or damaged, or has fewer numbers than ``truncate_dim``.
    """
    says = model_alone(name, registry, pooling=pooling or "model", prompt=prompt)
    models, where = Models(registry), resolve_device(device)
    encoder, tokenizer = models.load(name, says.model)
    making = Making(encoder.to(where), tokenizer, models, where, name)
    longest = max_length or says.inference.max_length or encoder.max_positions
    if not says.inference.slice:
        longest = min(longest, encoder.max_positions)
    sentence_encoder = make_sentence_encoder(says.of("pool"), longest, says.inference, making)
    if says.says.ensemble:
        inside = models.weights(name) / MEMBERS
        given: dict[str, Any] = {"pooling": pooling, "max_length": max_length, "prompt": prompt}
        members = tuple(
            load(str(inside / one), registry, device=device, **given).sentence_encoder
            for one in says.says.ensemble
        )
        sentence_encoder = replace(sentence_encoder, members=members, join=says.says.join)
    for part in sentence_encoder.modules():
        part.eval()
    if precision == "int8":
        for one in (sentence_encoder, *sentence_encoder.members):
            to_int8(one.encoder.model, where)
    if truncate_dim is not None:
        if truncate_dim > (size := sentence_encoder.dimension):
            raise CseError(f"the model's vectors have {size} numbers",
                           where="inference.truncate_dim", value=truncate_dim)  # fmt: skip
        sentence_encoder = replace(sentence_encoder, truncate_dim=truncate_dim)
    row, several, heads, _ = says.inference_parts
    words = [f"{says.says.join} of {1 + len(sentence_encoder.members)} encoders"] * bool(
        says.says.ensemble
    )
    words += [f"pooling {row.use}", *(f"head {head.name}" for head in heads)]
    words += [f"several vectors {part.name}" for part in several]
    words += [f"prompt {tokenizer.prompt!r}"] if tokenizer.prompt else []
    prompts = {} if prompt is not None else says.says.role_prompts()
    record = registry.one(BackendSpec, says.facts.backend)
    by = f"{record.distribution} ({record.spec.summary})" * (record.distribution != TOOLKIT)
    return SentenceModel(
        sentence_encoder,
        name,
        ", ".join(words),
        where,
        INT8 if precision == "int8" else resolve_precision(precision, where),
        by,
        says.says.similarity,
        prompts,
    )
