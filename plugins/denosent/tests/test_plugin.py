"""The kit over the distribution, its loss and its recipe; how rows are joined, what is kept."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from cse_testkit import part_suites, recipe_suites, run_steps

from cse_core.errors import CseError

SMALL = ["loss.denoise.layers=2", "loss.denoise.wide=16", "train.batch_size=4"]
globals().update(recipe_suites("cse-denosent", Path(__file__).parent / "settings"))
globals().update(
    part_suites(
        "cse-denosent",
        {
            "loss.denoise": {
                "options": {"layers": 2, "wide": 16},
                "variants": ({"target": "anchor", "heads": 2, "layers": 1, "wide": 8},),
            }
        },
    )
)


def test_rows_are_joined_by_their_text() -> None:
    """Anchors in another order with their owners give the same sums."""
    still = ["model.dropout=0", "loss.denoise.dropout=0", "loss.denoise.noise=0"]
    rig = run_steps(None, [*SMALL, *still], "denosent", steps=0)
    part, calls = rig.session.parts["loss.denoise"], []
    plain = part.sums
    part.sums = lambda *given: calls.append(given) or plain(*given)
    rig.step(1)
    views, ctx = calls[0]
    order = torch.arange(views["anchor"].tokens.rows).flip(0)
    anchor = views["anchor"]
    turned = replace(
        anchor, tokens=anchor.tokens.take_rows(order), vectors=anchor.vectors[order],
        place=anchor.place[order],
    )  # fmt: skip
    one, other = (plain(given, ctx) for given in (views, {**views, "anchor": turned}))
    assert torch.allclose(one.total, other.total) and len(order) > 1


def test_its_noise_and_its_decoder_follow_the_options() -> None:
    rig = run_steps(None, [*SMALL, "loss.denoise.noise=0.5"], "denosent", steps=1)
    part = rig.session.parts["loss.denoise"]
    assert part.noise.p == 0.5 and len(part.decoder.layers) == 2


@pytest.mark.parametrize(
    ("sets", "what"),
    [
        (["loss.denoise.heads=3"], r"does not divide the hidden size"),
        (["pool.mlp.dimension=4"], r"vectors of 4 numbers are not read by a decoder"),
    ],
)
def test_sizes_that_do_not_fit(sets: list[str], what: str) -> None:
    with pytest.raises(CseError, match=what):
        run_steps(None, [*SMALL, *sets], "denosent", steps=0)
