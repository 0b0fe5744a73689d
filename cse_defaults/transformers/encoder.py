"""The one place that knows how a Hugging Face encoder takes rows lying end to end."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from cse_core.errors import CseError
from cse_core.protocols import DropoutSource, Encoder
from cse_core.types import Hidden
from cse_defaults.transformers.architecture import (
    Evidence,
    forward_arguments,
    is_causal,
    layer_depths,
    plain_forward,
    position_range,
    take_pooler,
    transformer_layers,
    unusable,
    word_table,
)
from cse_defaults.transformers.attention import PACKED, RowLayout, register_packed_attention
from cse_defaults.transformers.model_files import DIRECTIONS
from cse_defaults.transformers.pretrained import (
    WHERE,
    load_model,
    load_tokenizer,
    translate_load_errors,
)
from cse_defaults.transformers.shortcuts import LastLayer, WordTable, recompute_layers
from cse_defaults.transformers.tokenizer import TextTokenizer

InputHook = Callable[[Tensor], Tensor]
MAX_PLACES = 2**20
"""Positions of the longest row."""
Attention = Literal["auto", "packed", "padded", "causal", "bidirectional"]


def row_slots(positions: Tensor, offsets: Tensor, width: int) -> Tensor:
    """Return each token's slot ``[T]`` in rows of ``width`` slots, at its position."""
    starts = torch.arange(len(offsets) - 1) * width
    slots = starts.repeat_interleave(offsets.diff())
    return slots.to(positions.device, non_blocking=True) + positions


class Packed:
    """All rows as one sequence ``[1, T]``; attention alone knows where they begin.

    ``positions`` are the places ``[T]`` in the rows, ``offsets`` are ``[R+1]`` int64 on the CPU.
    With ``by_position`` a row's tokens are put in the order of their positions, as causal attention
    and a sliding window need when positions were permuted; it counts the tokens that are there.
    """

    def __init__(
        self,
        tokens: Tensor,
        positions: Tensor,
        offsets: Tensor,
        source: DropoutSource | None,
        by_position: bool,
        causal: bool,
    ) -> None:
        self._order: Tensor | None = None
        if by_position:
            self._order = row_slots(positions, offsets, MAX_PLACES).argsort()
            self._inverse = self._order.argsort()
            positions = positions[self._order]
        self.positions = positions.unsqueeze(0)
        rows = RowLayout(offsets, tokens.device, source, causal)
        self.arguments: dict[str, Any] = {"row_layout": rows}

    def to_model(self, tokens: Tensor) -> Tensor:
        """Return ``[T, X]`` as ``[1, T, X]``."""
        return (tokens if self._order is None else tokens[self._order]).unsqueeze(0)

    def from_model(self, states: Tensor) -> Tensor:
        """Return ``[1, T, X]`` as ``[T, X]``."""
        tokens = states.squeeze(0)
        return tokens if self._order is None else tokens[self._inverse]


class Padded:
    """Rows side by side, ``[R, L]``, padded to the longest; a token sits at its position.

    Raises:
        ValueError: On a CPU, if two tokens of a row have one position.
    """

    def __init__(self, tokens: Tensor, positions: Tensor, offsets: Tensor) -> None:
        self.rows, self.longest = len(offsets) - 1, int(positions.max()) + 1
        self._slots = row_slots(positions, offsets, self.longest)
        real = torch.zeros(self.rows * self.longest, dtype=torch.long, device=tokens.device)
        real.index_fill_(0, self._slots, 1)
        # A GPU would have to be waited for once more.
        if tokens.device.type == "cpu" and int(real.sum()) != len(positions):
            raise ValueError("two tokens at the same of the positions of a row")
        self.positions = torch.arange(self.longest, device=tokens.device).expand(self.rows, -1)
        self.arguments: dict[str, Any] = {"attention_mask": real.view(self.rows, -1)}

    def to_model(self, tokens: Tensor) -> Tensor:
        """Return ``[T, X]`` as ``[R, L, X]``, zero on the padding."""
        flat = tokens.new_zeros(self.rows * self.longest, tokens.shape[1])
        return flat.index_copy(0, self._slots, tokens).view(self.rows, self.longest, -1)

    def from_model(self, states: Tensor) -> Tensor:
        """Return ``[R, L, X]`` as ``[T, X]``."""
        return states.flatten(0, 1).index_select(0, self._slots)


class _InputReached(Exception):  # noqa: N818
    """Ends a pass where the first layer would begin."""

    def __init__(self, states: Tensor) -> None:
        self.states = states


class PackedEncoder(Encoder):
    """An encoder of transformers.

    Rows are packed as one sequence ``[1, T]`` where the model's attention goes through
    transformers' attention interface, so that no work is done on padding. Other models are padded
    here and nowhere else. Which it is, is found by running a few tokens and comparing them with the
    model's own forward pass.

    Args:
        model: The encoder; it is changed in place.
        attention: ``packed`` refuses a model that cannot be packed, ``padded`` never packs.

    Attributes:
        packed: Whether rows go to the model without padding.
        why_padded: Why not, one clause; None if ``packed``.
        causal: Whether tokens see those before them alone, as in decoders, by the same evidence.
        only_fp32: Whether the model computes in fp32 under autocast too.
        recompute: Whether :meth:`use_dropout` is to let the backward pass recompute layers.

    Raises:
        CseError: If the model takes no word embeddings, has a decoder behind an encoder, was to be
            packed and cannot be, or reads in another direction than it was to.
    """

    model: PreTrainedModel

    def __init__(self, model: PreTrainedModel, *, attention: Attention = "auto") -> None:
        super().__init__()
        self.model = model
        self.own_pooler = take_pooler(model)
        self.recompute = False
        self._arguments = forward_arguments(model)
        table = word_table(model)
        self._word_table = WordTable(table)
        self.embedding_size = int(table.embedding_dim)
        self.vocab_size = int(table.num_embeddings)
        self.hidden_size = int(model.config.hidden_size)
        self.layer_count = int(model.config.num_hidden_layers)
        self.first_position, self.max_positions = position_range(model)
        # DeBERTa masks its scores, bf16 under autocast, with the lowest number of fp32.
        self.only_fp32 = model.config.model_type == "deberta"
        self._windowed = getattr(model.config, "sliding_window", None) is not None
        self.causal = False
        self.packed, self.why_padded = False, cast(str | None, "padding was requested")
        self._last_layer: LastLayer | None = None
        self._choose_layout(attention)

    def _choose_layout(self, attention: Attention) -> None:
        """Pack if the model can be packed, by the evidence of a few tokens."""
        name = type(self.model).__name__
        if next(self.model.parameters()).is_meta:
            return  # a plan's, with which nothing can be run
        was_training = self.model.training
        self.model.eval()
        try:
            evidence = plain_forward(self.model, self.max_positions)
            self.causal = is_causal(evidence)
            if attention in DIRECTIONS and self.causal != (attention == "causal"):
                what = f"{name} has no {attention} attention"
                hint = "leave it out, and it reads as its folder says"
                raise CseError(what, where="model.attention", value=attention, hint=hint)
            if attention != "padded":
                self.why_padded = self._try_to_pack(evidence)
                self.packed = self.why_padded is None
                self._last_layer = self._try_to_read_alone(evidence)
            if attention == "packed" and not self.packed:
                what = f"{name} cannot be packed: {self.why_padded}"
                hint = 'leave attention at "auto" and its rows are padded'
                raise CseError(what, where="model.name", hint=hint)
            if not self.packed and not self._agrees(evidence):
                what = "gives different results for word embeddings and token ids"
                raise unusable(f"{name} {what}")
        finally:
            self.model.train(was_training)

    def _try_to_pack(self, evidence: Evidence) -> str | None:
        """Switch the model to packed attention; return why that failed, and switch back."""
        name = type(self.model).__name__
        if not getattr(self.model, "_supports_attention_backend", False):
            return f"{name} does not use transformers' attention interface"
        if "position_ids" not in self._arguments:
            return f"{name} takes no position ids"
        before = self.model.config._attn_implementation
        register_packed_attention()
        self.model.set_attn_implementation(PACKED)
        self.packed = True
        try:
            if self._agrees(evidence):
                return None
            why = f"{name} gives different results packed and padded"
        except Exception as error:  # whatever an unknown family does, padding still works
            why = f"{name} fails when packed ({type(error).__name__}: {error})"
        self.packed = False
        self.model.set_attn_implementation(before)
        return why

    def _try_to_read_alone(self, evidence: Evidence) -> LastLayer | None:
        """Return the last layer if it can be run for one token a row, by the same evidence."""
        if not self.packed or self._windowed or self.causal:
            return None
        layer = self._last_layer = LastLayer.find(self.model)
        try:
            agrees = layer is not None and self._agrees(evidence, alone=True)
        except Exception:  # whatever an unknown family does, the whole layer still works
            agrees = False
        return layer if agrees else None

    def _agrees(self, evidence: Evidence, *, alone: bool = False) -> bool:
        """Check whether the present layout gives the model's own output ``[T, H]``."""
        expected, ids, lengths = evidence
        offsets = torch.tensor([0, *lengths]).cumsum(0)
        positions = torch.cat([torch.arange(length) for length in lengths]).to(ids.device)
        read = (offsets[1:] - 1).to(ids.device) if alone else None
        with torch.no_grad():
            last = self(self.word_embeddings(ids), positions, offsets, read=read).last
        if read is not None:
            expected = expected[read]
        tolerance = 1e-3 if last.dtype == torch.float32 else 5e-2
        return last.shape == expected.shape and torch.allclose(
            last, expected, rtol=tolerance, atol=tolerance
        )

    @classmethod
    def load(cls, path: str | Path, *, attention: Attention = "auto", **how: Any) -> PackedEncoder:
        """Load a Hugging Face encoder as ``pretrained.load_model`` does, which gets ``how``."""
        with translate_load_errors(str(path)):
            direction = attention if attention in DIRECTIONS else None
            model, _ = load_model(path, direction=direction, **how)
            return cls(model, attention=attention)

    @classmethod
    def load_with_tokenizer(
        cls, path: str | Path, *, prompt: str = "", lower_case: bool = False, **how: Any
    ) -> tuple[PackedEncoder, TextTokenizer]:
        """Load an encoder as ``load`` does, and its tokenizer, which puts a prompt before texts.

        A tokenizer with ids that the encoder has not is refused.
        """
        encoder, name = cls.load(path, **how), str(path)
        with translate_load_errors(name, part="the tokenizer"):
            tokenizer = TextTokenizer(load_tokenizer(path, lower_case=lower_case), prompt)
            highest = max(tokenizer.hf.get_vocab().values(), default=0)
        if highest >= encoder.vocab_size:
            what = f"its tokenizer has ids up to {highest}, and it embeds {encoder.vocab_size} ids"
            hint = "copy the tokenizer that belongs to the weights"
            raise CseError(what, where=WHERE, value=name, hint=hint)
        return encoder, tokenizer

    def use_dropout(self, source: DropoutSource) -> None:
        """Draw every dropout mask from ``source``; layers are recomputed with it from then on."""
        super().use_dropout(source)
        if self.recompute:
            recompute_layers(self.model, source)
            self.recompute = False  # a copy has the layers as they are now

    def depths(self) -> dict[str, int]:
        """Count the layers above each parameter (see ``Encoder``)."""
        return {f"model.{name}": depth for name, depth in layer_depths(self.model).items()}

    def copy(self, share_embeddings: bool = False) -> PackedEncoder:
        """Return a copy (see ``Encoder``)."""
        table = self.model.get_input_embeddings()
        shared: list[nn.Module | nn.Parameter] = [table] if share_embeddings else []
        shared += [tensor for tensor in self.parameters() if not tensor.requires_grad]
        return copy.deepcopy(self, {id(tensor): tensor for tensor in shared})

    def word_embeddings(self, ids: Tensor) -> Tensor:
        """Return ``[T, E]`` word embeddings of ``[T]`` ids."""
        table = self.model.get_input_embeddings()
        return self._word_table(ids) if table is self._word_table.table else table(ids)

    def input_embeddings(self, words: Tensor, positions: Tensor, offsets: Tensor) -> Tensor:
        """Return ``[T, H]``, what enters the first layer."""

        def stop(states: Tensor) -> Tensor:
            raise _InputReached(states)

        try:
            hidden: Hidden = self(words, positions, offsets, on_input=stop)
            return hidden.last  # of no rows at all
        except _InputReached as reached:
            return reached.states

    def layers(self) -> list[nn.Module]:
        """Return the transformer layers."""
        return transformer_layers(self.model)

    def drop_layers(self, keep: int = 0) -> None:
        """Free the weights of all layers but the first (see ``Encoder``)."""
        for layer in self.layers()[keep:]:
            layer.to("meta")
        if keep:
            for module in self.model.modules():
                if isinstance(module, nn.ModuleList) and len(module) == self.layer_count:
                    del module[keep:]
            self.model.config.num_hidden_layers = self.layer_count = keep
            self._last_layer = None

    def forward(
        self,
        words: Tensor,
        positions: Tensor,
        offsets: Tensor,
        *,
        on_input: InputHook | None = None,
        layers: Collection[int] = (),
        read: Tensor | None = None,
    ) -> Hidden:
        """Encode R rows of T tokens in all (see ``Encoder``)."""
        if wrong := [i for i in layers if not 0 <= i <= self.layer_count]:
            raise ValueError(f"no layer {wrong[0]}: the encoder has {self.layer_count}")
        if words.shape[0] == 0:
            empty = words.new_zeros(0, self.hidden_size)
            return Hidden(empty, dict.fromkeys(layers, empty))
        lengths = offsets.diff()
        longest = int(lengths.max())
        if longest > self.max_positions:
            raise ValueError(f"a row of {longest} tokens; the encoder takes {self.max_positions}")
        layout: Packed | Padded
        if self.packed:
            in_order, source = self._windowed or self.causal, self.dropout_source
            layout = Packed(words, positions, offsets, source, in_order, self.causal)
        else:
            layout = Padded(words, positions, offsets)
        taken: dict[int, Tensor] = {}
        reading: AbstractContextManager[None] | None = None
        if self._last_layer is not None and read is not None and self.layer_count not in layers:
            if bool(lengths.all()):  # an empty row has no token to read
                index = read.to(layout.positions.device, non_blocking=True)
                rows = layout.arguments["row_layout"]
                reading = self._last_layer.reading(self.model, rows, index)
        without = torch.autocast(words.device.type, enabled=False)
        with (
            self._tapped(layout, on_input, layers, taken),
            without if self.only_fp32 else nullcontext(),
            reading or nullcontext(),
            self._seeded(),
        ):
            arguments = self._model_arguments(layout)
            out = self.model(inputs_embeds=layout.to_model(words), **arguments)
        last = layout.from_model(out[0])
        if self.layer_count in layers:
            taken[self.layer_count] = last
        return Hidden(last, {i: taken[i] for i in layers}, selected_only=reading is not None)

    def _model_arguments(self, layout: Packed | Padded) -> dict[str, Any]:
        arguments, positions = dict(layout.arguments), layout.positions
        if "position_ids" in self._arguments:
            arguments["position_ids"] = positions + self.first_position
        if "token_type_ids" in self._arguments and hasattr(self.model.config, "type_vocab_size"):
            # Given, since a model's own would be cut from a table as long as its positions.
            arguments["token_type_ids"] = torch.zeros_like(positions)
        if "use_cache" in self._arguments:
            arguments["use_cache"] = False
        return arguments

    @contextmanager
    def _tapped(
        self,
        layout: Packed | Padded,
        on_input: InputHook | None,
        layers: Collection[int],
        taken: dict[int, Tensor],
    ) -> Iterator[None]:
        """Watch the transformer layers during one forward pass.

        The calls are counted, since a model may use one layer's weights several times (ALBERT).
        """
        inner = sorted(i for i in layers if i < self.layer_count)
        if on_input is None and not inner:
            yield
            return
        calls = 0

        def before(_: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
            nonlocal calls
            calls += 1
            if calls > 1 or (on_input is None and 0 not in layers):
                return None
            entered = layout.from_model(args[0])
            changed = entered if on_input is None else on_input(entered)
            if 0 in layers:
                taken[0] = changed
            # The layer reads what was kept for its gradient, also where nobody changed it.
            return None if on_input is None else (layout.to_model(changed), *args[1:])

        def after(_: nn.Module, __: tuple[Any, ...], output: Any) -> None:
            if calls in inner:
                taken[calls] = layout.from_model(output[0] if isinstance(output, tuple) else output)

        blocks = transformer_layers(self.model)
        if not blocks:
            what = f"the layers of {type(self.model).__name__} are not known"
            hint = "use parts that need neither input embeddings nor inner layers"
            raise CseError(what, where="model.name", hint=hint)
        with ExitStack() as hooks:
            for block in blocks:
                hooks.enter_context(block.register_forward_pre_hook(before))
                hooks.enter_context(block.register_forward_hook(after))
            yield

    @contextmanager
    def _seeded(self) -> Iterator[None]:
        """Seed what draws from torch's own generator: attention dropout of a padded model."""
        if self.packed or self.dropout_source is None or not self.training:
            yield
            return
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.dropout_source.next_seed())
            yield
