"""An ensemble: encoders of several branches saved as one model, and how it is read again."""

from pathlib import Path

import numpy as np
import pytest
from cse_testkit import compose
from cse_testkit.runs import Rig
from sentence_transformers import SentenceTransformer

import cse
from cse_core.errors import CseError
from cse_engine.run.checkpoint import Checkpoint, restore_weights

BRANCH = {"branch": ["ema"], "pool": ["cls", "+mlp", "+token-vectors"]}
SETS = ("branch.ema.decay=0.5", "inference.ensemble=['ema']", "train.lr=0.01")


@pytest.mark.parametrize(("join", "keep"), [("mean", "train"), ("concat", "always")])
def test_its_vectors_are_joined_of_its_encoders(tmp_path: Path, join: str, keep: str) -> None:
    sets = [*SETS, f"inference.join={join}", f"pool.mlp.keep={keep}", "views.positive.branch=ema"]
    rig = Rig(compose(kinds=BRANCH, sets=sets))
    rig.step(3)
    rig.session.save(tmp_path / "model")
    texts = list(rig.session.corpus.column("text"))[:5]
    members = [cse.load(tmp_path / place, device="cpu")
               for place in ("model/members/ema", "model")]  # fmt: skip
    whole = members[1].encode(texts)
    np.testing.assert_allclose(whole, rig.session.encode(texts), atol=1e-5)
    parts = [members[0].encode(texts)]
    width = parts[0].shape[1]
    if join == "concat":
        assert whole.shape[1] == 2 * width
        np.testing.assert_allclose(whole[:, width:], parts[0], atol=1e-6)
        assert np.abs(whole[:, :width] - parts[0]).max() > 1e-3
    else:
        assert whole.shape[1] == width and np.abs(whole - parts[0]).max() > 1e-3
    for one, other in zip(*(member.encode_several(texts) for member in members[::-1]), strict=True):
        assert one.shape == (len(other), whole.shape[1])
        if join == "concat":
            np.testing.assert_allclose(one[:, width:], other, atol=1e-6)
        assert np.abs(one[:, :width] - other).max() > 1e-3
    assert f"{join} of 2 encoders" in members[1].description
    cut = cse.load(tmp_path / "model", device="cpu", truncate_dim=width - 3).encode(texts)
    np.testing.assert_array_equal(cut, whole[:, : width - 3])
    theirs = SentenceTransformer(str(tmp_path / "model"), device="cpu", trust_remote_code=True)
    np.testing.assert_allclose(theirs.encode(texts), whole, atol=1e-5)
    with pytest.raises(ValueError, match="trust_remote_code"):
        SentenceTransformer(str(tmp_path / "model"), device="cpu")


def test_what_is_refused_and_warned_of(tmp_path: Path) -> None:
    with pytest.raises(CseError, match=r"no further branch.*add one: --branch"):
        compose(sets=["inference.ensemble=['ema']"])
    with pytest.raises(CseError, match=r"no further branch.*did you mean ema"):
        compose(kinds=BRANCH, sets=["inference.ensemble=['emma']"])
    with pytest.raises(CseError, match="named twice"):
        compose(kinds=BRANCH, sets=["inference.ensemble=['ema', 'ema']"])
    rig = Rig(compose(kinds=BRANCH, sets=[*SETS, "views.positive.branch=ema"]))
    rig.session.save(tmp_path / "model")
    plan = cse.plan(model=tmp_path / "model", data=["one text", "another"])
    assert any("starts without its encoders ema" in line for line in plan.warnings)


def test_the_chosen_step_is_that_of_every_encoder() -> None:
    rig = Rig(compose(kinds=BRANCH, sets=[*SETS, "views.positive.branch=ema"]))
    loop, texts = rig.session._loop, list(rig.session.corpus.column("text"))[:5]
    rig.step(2)
    best, vectors = loop.checkpoint(), rig.session.encode(texts)
    best = Checkpoint({n: value.clone() for n, value in best.tensors.items()}, best.values)
    rig.step(2)
    assert np.abs(rig.session.encode(texts) - vectors).max() > 1e-4
    restore_weights(loop.assembly, best)
    np.testing.assert_allclose(rig.session.encode(texts), vectors, atol=1e-6)
