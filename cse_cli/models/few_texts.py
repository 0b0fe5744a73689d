"""A few texts encoded without torch, where that gives what the loaded model gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cse_cli.models.encoding import note_of
from cse_core.backend import FewTexts
from cse_core.errors import CseError
from cse_core.registry.plugin_info import TOOLKIT
from cse_engine.compose.compose import model_alone
from cse_engine.compose.models import Models

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cse_cli.models.loading import Loading
    from cse_core.model_card import SimilarityName
    from cse_core.registry.registry import Registry
    from cse_core.suites import Role

PROBE = "Ein Café in KÖLN, naïve co-op's №5 & 東京 – (don't) encode_me! 3.14 ﬁne 😀 Ünïcode"
"""What a loaded model encoded, and another way to encode must give again."""
_TOLERANCE = 1e-4
_POOLERS: Mapping[str, Callable[[Any], Any]] = {
    "mean": lambda states: states.mean(axis=0),
    "cls": lambda states: states[0],
}


@dataclass
class FewTextsEncoder:
    """Encodes texts as a :class:`~cse_cli.models.encoding.TextEncoder` of the loaded model does."""

    name: str
    similarity: SimilarityName
    max_length: int
    _few: FewTexts
    _pool: str
    _prompt: str
    _prompts: Mapping[Role, str]
    _normalize: bool
    _truncate_dim: int | None
    texts: int = 0
    cut: int = 0
    tokens: int = 0
    unknown: int = 0

    def __call__(
        self, texts: Sequence[str], block: int | None = None, role: Role | None = None
    ) -> NDArray[np.float32]:
        """Return their vectors ``[N, D]``.

        Raises:
            LookupError: If the backend cannot compute them.
        """
        import numpy as np

        from cse_cli.models.geometry import unit

        prompt = self._prompt if role is None else self._prompts.get(role, self._prompt)
        made = self._few(texts, self.max_length, prompt)
        if made is None:
            raise LookupError(f"{self.name} gives no states")
        self.texts += len(texts)
        self.cut += made.cut
        self.tokens += made.tokens
        self.unknown += made.unknown
        vectors = np.stack([_POOLERS[self._pool](states) for states in made.states])
        vectors = unit(vectors) if self._normalize else vectors
        return vectors[:, : self._truncate_dim].astype(np.float32)

    @property
    def note(self) -> str | None:
        """Describe the texts that were cut or not understood; None where all were read."""
        return note_of(self, self.name, self.max_length, self._few.max_positions)


def few_texts_encoder(
    name: str, registry: Registry, loading: Loading, probe: Sequence[float]
) -> FewTextsEncoder | None:
    """Return an encoder that needs no torch; None where the model has to be loaded.

    Args:
        name: Name of the model.
        registry: Finds it.
        loading: How to load it.
        probe: The vector of ``PROBE`` as a query, by the loaded model; it has to give the same.
    """
    import numpy as np

    if loading.device not in ("auto", "cpu") or loading.precision != "fp32":
        return None
    models = Models(registry)
    try:
        says = model_alone(
            name, registry, pooling=loading.pooling or "model", prompt=loading.prompt
        )
        folder = models.weights(name)
        backend, card = models.backend(folder), models.card(folder, name)
        opened = backend.few_texts(folder, name, card) if hasattr(backend, "few_texts") else None
    except CseError:  # loading it says what is wrong
        return None
    row, _, heads, slicer = says.inference_parts
    plain = row.distribution == TOOLKIT and row.use in _POOLERS
    plain = plain and getattr(row.options, "include_prompt", True)
    if opened is None or not plain or heads or slicer or says.says.ensemble:
        return None
    longest = loading.max_length or says.inference.max_length or opened.max_positions
    encoder = FewTextsEncoder(
        name,
        says.says.similarity,
        min(longest, opened.max_positions),
        opened,
        row.use,
        says.model.prompt or "",
        {} if loading.prompt is not None else says.says.role_prompts(),
        says.inference.normalize,
        loading.truncate_dim or says.inference.truncate_dim,
    )
    try:
        (made,) = encoder([PROBE], role="query")
    except LookupError:
        return None
    wanted = np.asarray(probe, np.float32)
    if (
        made.shape != wanted.shape
        or np.abs(made - wanted).max() > _TOLERANCE * np.abs(wanted).max()
    ):
        return None
    encoder.texts = encoder.cut = encoder.tokens = encoder.unknown = 0
    return encoder
