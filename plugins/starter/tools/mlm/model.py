"""A BERT encoder with its masked-token head, written for speed on rows of one length.

The weights carry the names of transformers' BertForMaskedLM, which loads the exported folder. The
masked-token head (transform, tied decoder) runs on the chosen positions only.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save
from torch import Tensor, nn
from transformers import BertConfig, BertForMaskedLM
from transformers import __version__ as transformers_version

from cse_core.errors import CseError

POSITIONS = 512
"""Of a new model."""
WORD_EMBEDDINGS = "bert.embeddings.word_embeddings.weight"


class ChunkedCrossEntropy(torch.autograd.Function):
    """Mean cross-entropy in fp32 over few rows at a time, whatever the format of the logits.

    The gradient is made in the forward pass while a chunk is in the cache; on a CPU that takes a
    fifth of the time of a cross-entropy of all logits cast to fp32.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor, chunk: int = 64) -> Tensor:  # noqa: D102
        total = logits.new_zeros((), dtype=torch.float32)
        gradient = torch.empty_like(logits)
        chunk = chunk if logits.device.type == "cpu" else len(labels)
        for start in range(0, len(labels), chunk):
            part, label = logits[start : start + chunk].float(), labels[start : start + chunk, None]
            log_sum = part.logsumexp(-1, keepdim=True)
            total += (log_sum - part.gather(1, label)).sum()
            part.sub_(log_sum).exp_()
            part.scatter_add_(1, label, part.new_full((1, 1), -1.0).expand_as(label))
            gradient[start : start + chunk] = part.div_(len(labels))
        ctx.save_for_backward(gradient)
        return total / len(labels)

    @staticmethod
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor, None, None]:  # noqa: D102
        (gradient,) = ctx.saved_tensors
        return gradient * scale.to(gradient.dtype), None, None


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return softmax(q k' / sqrt(d)) v for `[R, heads, L, d]`, by the faster way of the device.

    On a CPU, torch's fused kernel takes two to four times as long, backward, as the plain
    products at these lengths.
    """
    if q.device.type != "cpu":
        return F.scaled_dot_product_attention(q, k, v)
    scores = torch.matmul(q * q.shape[-1] ** -0.5, k.transpose(-1, -2))
    return torch.matmul(torch.softmax(scores, -1), v)


class MaskedLanguageModel(nn.Module):
    """BERT with a masked-token head; no dropout (a small model underfits a few passes).

    Args:
        config: Sizes of the model, which must use GELU and absolute positions.
        weights: Names of BertForMaskedLM -> fp32 tensors.
    """

    def __init__(self, config: BertConfig, weights: dict[str, Tensor]) -> None:
        super().__init__()
        self.config = config
        self.names = list(weights)
        self.weights = nn.ParameterList([nn.Parameter(weights[name]) for name in self.names])

    def state(self) -> dict[str, Tensor]:
        """Return name -> fp32 tensor, detached."""
        return {n: p.detach() for n, p in zip(self.names, self.weights, strict=True)}

    def hidden_states(
        self, ids: Tensor, dtype: torch.dtype = torch.float32
    ) -> tuple[list[Tensor], dict[str, Tensor]]:
        """Encode rows of one length.

        Args:
            ids: Token ids `[R, L]`, no padding.
            dtype: Number format of the layers; the embedding sums stay in fp32.

        Returns:
            The embedding output and every layer's output, each `[R, L, H]`, and the weights cast
            to `dtype`.
        """
        full = dict(zip(self.names, self.weights, strict=True))
        w = {name: value.to(dtype) for name, value in full.items()}
        eps, heads = self.config.layer_norm_eps, self.config.num_attention_heads
        rows, length = ids.shape
        size = self.config.hidden_size
        e = "bert.embeddings."
        # fp32: a bf16 table would sum a frequent token's gradient in bf16
        x = F.embedding(ids, full[e + "word_embeddings.weight"])
        x = x + (
            full[e + "position_embeddings.weight"][:length]
            + full[e + "token_type_embeddings.weight"][0]
        )
        x = x.to(dtype)
        x = F.layer_norm(x, (size,), w[e + "LayerNorm.weight"], w[e + "LayerNorm.bias"], eps)
        states = [x]
        for layer in range(self.config.num_hidden_layers):
            n = f"bert.encoder.layer.{layer}."
            a = n + "attention."
            parts = [a + f"self.{part}." for part in ("query", "key", "value")]
            qkv = F.linear(
                x,
                torch.cat([w[part + "weight"] for part in parts]),
                torch.cat([w[part + "bias"] for part in parts]),
            )
            q, k, v = qkv.view(rows, length, 3, heads, size // heads).permute(2, 0, 3, 1, 4)
            mixed = attention(q, k, v).transpose(1, 2).reshape(rows, length, size)
            o = a + "output."
            x = x + F.linear(mixed, w[o + "dense.weight"], w[o + "dense.bias"])
            x = F.layer_norm(x, (size,), w[o + "LayerNorm.weight"], w[o + "LayerNorm.bias"], eps)
            y = F.linear(x, w[n + "intermediate.dense.weight"], w[n + "intermediate.dense.bias"])
            o = n + "output."
            x = x + F.linear(F.gelu(y), w[o + "dense.weight"], w[o + "dense.bias"])
            x = F.layer_norm(x, (size,), w[o + "LayerNorm.weight"], w[o + "LayerNorm.bias"], eps)
            states.append(x)
        return states, w

    def _vocabulary_logits(self, vectors: Tensor, w: dict[str, Tensor]) -> Tensor:
        size, eps = self.config.hidden_size, self.config.layer_norm_eps
        t = "cls.predictions.transform."
        x = F.gelu(F.linear(vectors, w[t + "dense.weight"], w[t + "dense.bias"]))
        x = F.layer_norm(x, (size,), w[t + "LayerNorm.weight"], w[t + "LayerNorm.bias"], eps)
        table = w["bert.embeddings.word_embeddings.weight"]
        return F.linear(x, table, w["cls.predictions.bias"])

    def forward(
        self,
        ids: Tensor,
        positions: Tensor,
        labels: Tensor,
        dtype: torch.dtype,
        words: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Predict masked tokens from their states, and a row's sentence vector.

        The second trains what pooling reads, which masked prediction alone leaves to chance: the
        mean state of the row, and the state of [CLS], turn towards the sum of its words' vectors.

        Args:
            ids: Masked rows `[R, L]`.
            positions: Flat places of the masked tokens `[M]`.
            labels: The tokens that stood there `[M]`.
            dtype: Number format of the layers.
            words: Weighted vectors of the words `[V, H]`; None leaves the second out.

        Returns:
            Mean cross-entropy (nats) over the masked tokens; and 1 - cosine to the sentence vector,
            averaged over rows, of the mean state plus that of [CLS]'s state.
        """
        states, w = self.hidden_states(ids, dtype)
        last = states[-1]
        chosen = last.reshape(-1, self.config.hidden_size).index_select(0, positions)
        logits = self._vocabulary_logits(chosen, w)
        masked: Tensor = ChunkedCrossEntropy.apply(logits, labels)  # type: ignore[no-untyped-call]
        if words is None:
            return masked, masked.new_zeros(())
        whole = ids.reshape(-1).index_copy(0, positions, labels).view_as(ids)[:, 1:-1]
        target = F.embedding_bag(whole, words, mode="sum")
        pooled = (last.float().mean(1), last[:, 0].float())
        near = [F.cosine_similarity(vector, target).mean() for vector in pooled]
        return masked, 2.0 - near[0] - near[1]


def new_model(
    layers: int,
    hidden: int,
    heads: int,
    vocab_size: int,
    seed: int,
    words: Tensor | None = None,
) -> MaskedLanguageModel:
    """Build a randomly initialised model (normal, 0.02; feed-forward 4 x hidden; 512 positions).

    Args:
        layers: Transformer layers.
        hidden: Size of a state.
        heads: Attention heads.
        vocab_size: Words.
        seed: Of the random weights.
        words: Unit vectors of the words `[V, H]`, from which the word embeddings start, at half
            their length.
    """
    config = BertConfig(
        vocab_size=vocab_size,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * hidden,
        max_position_embeddings=POSITIONS,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        reference = BertForMaskedLM(config)
    weights = _named(reference)
    if words is not None:
        weights[WORD_EMBEDDINGS] = 0.5 * words
    return MaskedLanguageModel(config, weights)


def _named(reference: BertForMaskedLM) -> dict[str, Tensor]:
    return {name: value.detach().float().clone() for name, value in reference.named_parameters()}


def load_model(folder: Path) -> MaskedLanguageModel:
    """Load a BertForMaskedLM folder (config.json, model.safetensors) in fp32.

    Raises:
        CseError: The folder is not such a model.
    """
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        if not (folder / name).is_file():
            raise CseError(
                f"no {name} in it",
                where=f"--init {folder}",
                hint="name a folder of a BERT masked LM",
            )
    config = BertConfig.from_json_file(folder / "config.json")
    kind = (config.model_type, config.hidden_act, config.tie_word_embeddings)
    if kind != ("bert", "gelu", True):
        raise CseError("not a tied BERT with GELU", where=f"--init {folder}", value=kind)
    with torch.device("meta"):
        names = [name for name, _ in BertForMaskedLM(config).named_parameters()]
    stored = load_file(folder / "model.safetensors")
    missing = [name for name in names if name not in stored]
    if missing:
        raise CseError(
            f"weights lack {missing[0]} ({len(missing)} in all)",
            where=f"--init {folder}",
            hint="name a folder saved from BertForMaskedLM",
        )
    return MaskedLanguageModel(config, {name: stored[name].float() for name in names})


def export(model: MaskedLanguageModel, tokenizer_json: str, folder: Path) -> None:
    """Write a folder that AutoModel and AutoTokenizer load, fp16, beside and then renamed."""
    target, folder = folder, folder.with_name(folder.name + ".new")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    weights = {name: value.half().cpu().contiguous() for name, value in model.state().items()}
    (folder / "model.safetensors").write_bytes(save(weights, metadata={"format": "pt"}))
    config = model.config.to_dict()
    for key in ("_name_or_path", "id2label", "label2id", "problem_type"):
        config.pop(key, None)
    config.update(
        architectures=["BertForMaskedLM"],
        dtype="float16",
        transformers_version=transformers_version,
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1,
    )
    text = json.dumps(config, indent=2, sort_keys=True)
    (folder / "config.json").write_text(text + "\n", encoding="utf-8")
    (folder / "tokenizer.json").write_text(tokenizer_json, encoding="utf-8")
    vocabulary = json.loads(tokenizer_json)["model"]["vocab"]
    tokens = sorted(vocabulary, key=vocabulary.__getitem__)
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    settings = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": True,
        "strip_accents": None,
        "tokenize_chinese_chars": True,
        "model_max_length": model.config.max_position_embeddings,
        "cls_token": "[CLS]",
        "mask_token": "[MASK]",
        "pad_token": "[PAD]",
        "sep_token": "[SEP]",
        "unk_token": "[UNK]",
    }
    text = json.dumps(settings, indent=2)
    (folder / "tokenizer_config.json").write_text(text + "\n", encoding="utf-8")
    shutil.rmtree(target, ignore_errors=True)
    folder.rename(target)
