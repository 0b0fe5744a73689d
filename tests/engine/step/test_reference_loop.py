"""A run against a plain PyTorch loop, and what SimCSE's public code gets wrong."""

from pathlib import Path

import numpy as np
import torch
from torch import nn
from transformers import BertModel

from cse_defaults.texts import Corpus
from cse_engine.runtime.seeds import generator
from tests.fixtures.tiny import composed, metrics, sentences, trainer


def test_fifty_steps_equal_a_plain_loop(encoder: str, folder: Path) -> None:
    texts = sentences(600)
    composition = composed(
        encoder, "", "train.batch_size=16", "model.dropout=0", "train.lr=1e-4",
        "train.epochs=2", "train.max_steps=50", "train.log_steps=1", "train.seed=7",
        "train.weight_decay=0.1", folder=folder, rows=600,
    )  # fmt: skip
    run, _ = trainer(composition, Corpus.from_columns({"text": texts}), folder / "run")
    head = run.assembly.online.heads["mlp"]
    start = {name: value.clone() for name, value in head.state_dict().items()}
    run.run()

    model = BertModel.from_pretrained(encoder, add_pooling_layer=False).eval()
    dense = nn.Linear(32, 32)
    dense.load_state_dict({"weight": start["stages.0.weight"], "bias": start["stages.0.bias"]})
    named = [*model.named_parameters(), *((f"d.{n}", p) for n, p in dense.named_parameters())]
    bare = [p for n, p in named if n.endswith("bias") or "LayerNorm" in n]
    decayed = [p for n, p in named if not (n.endswith("bias") or "LayerNorm" in n)]
    adamw = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.1}, {"params": bare, "weight_decay": 0.0}], lr=1e-4
    )
    tokenizer = run.assembly.online.tokenizer.hf
    losses = []
    for step in range(50):
        epoch, place = divmod(step, 38)
        order = torch.randperm(600, generator=generator(torch.device("cpu"), 7, 0, "order", epoch))
        rows = order[place * 16 : place * 16 + 16]
        batch = tokenizer(
            [texts[i] for i in rows], padding=True, truncation=True, max_length=32,
            return_tensors="pt",
        )  # fmt: skip
        states = model(**batch)[0][:, 0]
        vectors = torch.tanh(dense(states))
        cosines = nn.functional.cosine_similarity(vectors[:, None], vectors[None], dim=-1)
        loss = nn.functional.cross_entropy(cosines / 0.05, torch.arange(len(rows)))
        adamw.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_([p for _, p in named], 1.0)
        for group in adamw.param_groups:
            group["lr"] = 1e-4 * (1 - step / 50)
        adamw.step()
        losses.append(float(loss.detach()))
    lines = metrics(folder / "run")
    assert [line["step"] for line in lines] == list(range(1, 51))
    np.testing.assert_allclose([line["loss"] for line in lines], losses, atol=1e-4)
    trained = dict(run.assembly.online.encoder.model.named_parameters())
    mine = torch.cat([trained[name].detach().flatten() for name, _ in model.named_parameters()])
    plain = torch.cat([value.detach().flatten() for value in model.parameters()])
    assert (mine - plain).norm() < 1e-4 * plain.norm()
    torch.testing.assert_close(head.state_dict()["stages.0.weight"], dense.weight.detach(),
                               rtol=1e-4, atol=1e-5)  # fmt: skip


def test_scores_and_models_leave_the_train_only_head_out(encoder: str, folder: Path) -> None:
    from sentence_transformers import SentenceTransformer

    texts = sentences(20)
    composition = composed(encoder, "", "train.lr=1e-3", folder=folder, rows=20)
    run, _ = trainer(composition, Corpus.from_columns({"text": texts}), folder / "run")
    run.run()
    model = BertModel.from_pretrained(run.folder.model, add_pooling_layer=False).eval()
    batch = run.assembly.online.tokenizer.hf(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        plain = model(**batch)[0][:, 0]
    torch.testing.assert_close(run.encode(texts), plain, rtol=1e-4, atol=1e-5)
    loaded = SentenceTransformer(str(run.folder.model), device="cpu")
    assert not [name for name, _ in loaded.named_parameters() if "pooler" in name]  # none is drawn
    np.testing.assert_allclose(loaded.encode(texts), plain.numpy(), rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        headed = run.assembly.online.heads["mlp"](plain)
    assert not torch.allclose(headed, plain, atol=1e-2)
