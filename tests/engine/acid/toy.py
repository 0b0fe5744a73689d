"""A backend of about 80 lines: a table of words, one linear layer, words cut at spaces."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from cse_core.backend import TokenCount, TrainedModel
from cse_core.errors import CseError
from cse_core.hookspecs import hookimpl
from cse_core.model_card import Declared
from cse_core.protocols import Encoder, Tokenizer
from cse_core.records import BackendSpec
from cse_core.run_info import RunInfo
from cse_core.types import Hidden, TokenBatch, offsets_of, positions_of, ragged_index

WORDS, WIDTH, LONGEST = 64, 8, 16


class ToyEncoder(Encoder):
    hidden_size = embedding_size = WIDTH
    layer_count, vocab_size, max_positions = 1, WORDS, LONGEST

    def __init__(self) -> None:
        super().__init__()
        words, layer = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.model = nn.ModuleDict({"words": words, "layer": layer, "drop": nn.Dropout(0.1)})

    def copy(self, share_embeddings: bool = False) -> "ToyEncoder":
        twin = ToyEncoder()
        twin.load_state_dict(self.state_dict())
        return twin

    def word_embeddings(self, ids: Tensor) -> Tensor:
        return self.model["words"](ids)  # type: ignore[no-any-return]

    def forward(
        self, words: Tensor, positions: Tensor, offsets: Tensor, *, on_input: Any = None,
        layers: Any = (), read: Tensor | None = None,
    ) -> Hidden:  # fmt: skip
        entered = words if on_input is None else on_input(words)
        last = self.model["drop"](torch.tanh(self.model["layer"](entered)))
        return Hidden(last, {number: (entered, last)[number] for number in layers})


class ToyTokenizer(Tokenizer):
    hf, before, after, special_count, longest = None, [], [], 0, None

    def __init__(self, prompt: str = "") -> None:
        self.prompt = prompt

    def with_prompt(self, prompt: str | None) -> "ToyTokenizer":
        return self if prompt in (None, self.prompt) else ToyTokenizer(prompt or "")

    def content(self, texts: Sequence[str], longest: int | None = None) -> TokenBatch:
        rows = [[sum(map(ord, word)) % WORDS for word in text.split()][:longest] for text in texts]
        ids = torch.tensor([token for row in rows for token in row], dtype=torch.long)
        offsets = offsets_of(torch.tensor([len(row) for row in rows], dtype=torch.long))
        place, owner = positions_of(offsets), torch.arange(len(rows))
        special = torch.zeros(len(ids), dtype=torch.bool)
        return TokenBatch(ids, place, place, place, special, offsets, owner, owner * 0)

    def wrap(
        self, content: TokenBatch, prompt: Any = ("", ""), longest: int | None = None
    ) -> TokenBatch:
        lengths = content.lengths.clamp_max(LONGEST if longest is None else longest)
        index = ragged_index(content.offsets[:-1], lengths)
        return replace(content.take_tokens(index, lengths), owner=content.owner)


class ToyBackend:
    def find(self, name: str, installed: Sequence[str], *, weights: bool) -> Path | None:
        return None

    def cached(self, name: str) -> Path | None:
        return None

    def takes(self, folder: Path) -> bool:
        return (folder / "toy.json").exists()

    def facts(self, folder: Path, name: str) -> RunInfo:
        return RunInfo(model=name, family="toy", hidden=WIDTH, layers=1, positions=LONGEST)

    def card(self, folder: Path, name: str) -> Declared:
        return Declared()

    def check(self, folder: Path, name: str) -> None:
        assert self.takes(folder)

    def count_tokens(self, folder: Path, texts: Sequence[str]) -> list[TokenCount]:
        return [TokenCount(len(text.split()), len(text.split()), 0) for text in texts]

    def problems(self, options: Any, facts: RunInfo) -> Iterator[CseError | str]:
        yield from ()

    def load(
        self, folder: Path, options: Any, card: Declared, *, seed: int = 0
    ) -> tuple[ToyEncoder, ToyTokenizer]:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            encoder = ToyEncoder()
        if (file := folder / "toy.safetensors").exists():
            encoder.model.load_state_dict(load_file(file))
        return encoder, ToyTokenizer(options.prompt or "")

    def save(self, trained: TrainedModel, folder: Path) -> str | None:
        (folder / "toy.json").write_text(json.dumps({"width": WIDTH}))
        save_file(trained.model.state_dict(), folder / "toy.safetensors")
        return trained.other


@hookimpl
def cse_models() -> list[BackendSpec]:
    return [BackendSpec(name="toy", summary="a toy", factory=f"{__name__}:ToyBackend")]
