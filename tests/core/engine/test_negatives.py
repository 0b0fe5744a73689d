"""Whose negatives are whose: stores, masks, levels, views of negatives."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from cse_core.engine.negatives import of_loss
from cse_core.errors import CseError
from cse_core.types import Negatives
from tests.fixtures.tiny import Bench, sentences

READY = (
    '[[pool]]\nuse = "cls"\n[[negatives]]\nuse = "ready"\n'
    '[[negatives]]\nuse = "ready"\nname = "second"\n'
)


def blocks(bench: Bench) -> tuple[tuple[str, int], ...]:
    seen: list[Negatives] = []
    loss = bench.part("loss.infonce")
    plain = type(loss).__call__

    class Watched(type(loss)):  # type: ignore[misc]
        def __call__(self, batch, targets, negatives, ctx):  # type: ignore[no-untyped-def]
            seen.append(negatives)
            return plain(self, batch, targets, negatives, ctx)

    loss.__class__ = Watched
    bench.step(0)
    bench.seen = seen  # type: ignore[attr-defined]
    return seen[0].blocks


@pytest.mark.parametrize(
    "wanted, expected",
    [
        ("all", ["in-batch", "ready", "second"]), ("in-batch", ["in-batch"]),
        ("stored", ["ready", "second"]), ("[second]", ["in-batch", "second"]),
    ],
)  # fmt: skip
def test_a_loss_chooses_its_negatives(
    wanted: str, expected: list[str], encoder: str, folder: Path
) -> None:
    bench = Bench(encoder, folder, READY, f"loss.infonce.negatives={wanted}")
    for name in ("ready", "second"):
        bench.part(f"negatives.{name}").given = {"vectors": torch.randn(3, 32)}
    assert [name for name, _ in blocks(bench)] == expected


def test_candidates_of_another_level_are_left_out(encoder: str, folder: Path) -> None:
    bench = Bench(encoder, folder, READY, "negatives.second.level=input")
    bench.part("negatives.second").given = {"vectors": torch.randn(3, 7)}
    assert [name for name, _ in blocks(bench)] == ["in-batch"]


def test_candidates_of_another_dimension_are_refused(encoder: str, folder: Path) -> None:
    """Unless no loss of their level takes them."""
    bench = Bench(encoder, folder, READY)
    bench.part("negatives.second").given = {"vectors": torch.randn(3, 7)}
    with pytest.raises(CseError) as caught:
        bench.step(0)
    assert str(caught.value) == (
        "negatives.second: its vectors have 7 dimensions and the anchors 32; "
        "give the heads of all branches one dimension"
    )
    bench = Bench(encoder, folder, READY, "loss.infonce.negatives=[ready]")
    bench.part("negatives.second").given = {"vectors": torch.randn(3, 7)}
    assert [name for name, _ in blocks(bench)] == ["in-batch"]


def test_masks_of_own_row_same_text_and_same_document(encoder: str, folder: Path) -> None:
    texts = sentences(24)
    texts[9], texts[2] = texts[0], texts[1]
    columns = {"text": texts, "document": [f"d{i // 6}" for i in range(24)]}
    bench = Bench(encoder, folder, READY, "loss.infonce.same_document=mask", columns=columns)
    bench.part("negatives.ready").given = {
        "vectors": torch.randn(5, 32), "row": torch.tensor([0, 9, 20, 2, -1]),
    }  # fmt: skip
    blocks(bench)
    negatives = bench.seen[0]  # type: ignore[attr-defined]
    mask, stored = negatives.mask[:, :8], negatives.mask[:, 8:]
    documents, ids = [i // 6 for i in range(24)], [texts.index(t) for t in texts]
    for i in range(8):
        for j in range(8):
            assert bool(mask[i, j]) == (documents[i] == documents[j] or ids[i] == ids[j])
        for n, row in enumerate([0, 9, 20, 2, -1]):
            same = row >= 0 and (documents[i] == documents[row] or ids[i] == ids[row])
            assert bool(stored[i, n]) == same
    kept = Bench(encoder, folder, READY, "loss.infonce.same_text=keep", columns=columns)
    blocks(kept)
    assert torch.equal(kept.seen[0].mask, torch.eye(8).bool())  # type: ignore[attr-defined]


def test_rows_of_another_rounds_texts_are_unknown(encoder: str, folder: Path) -> None:
    texts = sentences(24)
    pairs = {"text": texts[:12], "positive": texts[12:]}
    bench = Bench(encoder, folder, READY, columns={"text": texts}, pairs=pairs)
    bench.part("negatives.ready").given = {
        "vectors": torch.randn(4, 32), "row": torch.tensor([0, 3, 23, 10**6]),
    }  # fmt: skip
    blocks(bench)
    assert not bench.seen[0].mask[:, 8:].any()  # type: ignore[attr-defined]


def test_the_queue_keeps_an_ema_branchs_positives(encoder: str, folder: Path) -> None:
    recipe = '[[pool]]\nuse = "cls"\n[[negatives]]\nuse = "queue"\nbranch = "ema"\n'
    bench = Bench(encoder, folder, recipe, "train.lr=1e-2", "branch.ema.mode=eval")
    queue, sentence_encoder = bench.part("negatives.queue"), bench.assembly.encoders["ema"]
    calls = []
    plain = bench.assembly.encoders["ema"].encoder.forward
    sentence_encoder.encoder.forward = lambda *a, **k: (calls.append(1), plain(*a, **k))[1]  # type: ignore[method-assign]
    for step in range(3):
        texts = [bench.columns["text"][(i + 8 * step) % 24] for i in range(8)]
        sentence_encoder.encoder.eval()
        expected = sentence_encoder.encode(texts, torch.device("cpu"))
        del calls[:]
        bench.step(step)
        assert len(calls) == 1
        assert not queue.last.vectors.requires_grad
        torch.testing.assert_close(queue.vectors[-8:], expected, rtol=1e-4, atol=1e-5)
        moved = sentence_encoder.encode(texts, torch.device("cpu"))
        assert not torch.allclose(moved, expected, rtol=1e-6, atol=1e-6)
        assert queue.row[-8:].tolist() == [(i + 8 * step) % 24 for i in range(8)]
    assert queue.age.tolist() == [2] * 4 + [1] * 8


def test_a_store_weighs_what_a_loss_sees(encoder: str, folder: Path) -> None:
    recipe = '[[pool]]\nuse = "cls"\n[[negatives]]\nuse = "half"\n'
    bench = Bench(encoder, folder, recipe)
    assert [name for name, _ in blocks(bench)] == ["in-batch"]
    assert bool((bench.seen[0].log_weights < -0.6).all())  # type: ignore[attr-defined]
    assert bench.part("negatives.half").blocks == (("in-batch", 8),)


@pytest.mark.parametrize("role", ["negative", "soft_negative", "aux"])
def test_views_of_several_texts(role: str, encoder: str, folder: Path) -> None:
    recipe = f'[[pool]]\nuse = "cls"\n[[negatives]]\nuse = "extra-view"\nrole = "{role}"\n'
    bench = Bench(encoder, folder, recipe, "model.dropout=0")
    seen = blocks(bench)
    negatives = bench.seen[0]  # type: ignore[attr-defined]
    if role != "negative":
        assert seen == (("in-batch", 8),)
        return
    assert seen == (("in-batch", 8), ("negative", 16))
    assert not negatives.mask[:, 8:].any()
    assert negatives.row[8:].tolist() == [i for i in range(8) for _ in range(2)]
    texts = [f"{t} {w}" for t in bench.columns["text"][:8] for w in ("ba", "do")]
    fresh = Bench(encoder, folder, recipe).assembly.online.encode(texts, torch.device("cpu"))
    torch.testing.assert_close(negatives.vectors[8:].detach(), fresh, rtol=1e-4, atol=1e-5)


def test_negative_views_are_not_masked_for_the_text_of_their_sentence(
    encoder: str, folder: Path
) -> None:
    recipe = '[[pool]]\nuse = "cls"\n[[negatives]]\nuse = "extra-view"\n'
    texts = sentences(24)
    texts[3] = texts[0]
    bench = Bench(encoder, folder, recipe, columns={"text": texts})
    blocks(bench)
    negatives = bench.seen[0]  # type: ignore[attr-defined]
    assert bool(negatives.mask[0, 3]) and not negatives.mask[:, 8:].any()


def test_of_loss_takes_no_negatives_at_all(encoder: str, folder: Path) -> None:
    bench = Bench(encoder, folder, '[[pool]]\nuse = "cls"\n[[loss]]\nuse = "bias"\n')
    result = bench.step(0)
    assert result.loss.isfinite()
    assert of_loss.__doc__


def test_positives_of_another_dimension_are_refused_before_the_first_step(
    encoder: str, folder: Path
) -> None:
    recipe = (
        '[[pool]]\nuse = "cls"\n[[pool]]\nuse = "mlp"\nbranches = "online"\ndimension = 16\n'
        '[views.positive]\nbranch = "ema"\n[[branch]]\nuse = "ema"\n'
    )
    printed = "views.positive.branch: its vectors have 32 dimensions and the anchors 16"
    with pytest.raises(CseError, match=printed):
        Bench(encoder, folder, recipe)
