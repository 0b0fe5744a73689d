"""Parts that hold parts: what they are written as, what they are lent, what is refused."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from cse_core.errors import CseError, CseErrors, PartError
from cse_core.options import LossOptions, PoolerOptions
from cse_core.records import RowPoolerSpec
from cse_engine.run.recipe_file import as_recipe, dump_recipe
from tests.fixtures.small_parts import TwiceOptions
from tests.fixtures.tiny import Bench, composed

POOL = '[[pool]]\nuse = "mean"\n'
HELD = POOL + '[[loss]]\nuse = "twice"\ntimes = 4\nin_batch = "both"\n'
INNER = HELD + '[loss.inner]\nuse = "twice"\ntimes = 0.5\ninner = "infonce"\n'
COLD = "loss.twice.inner.inner.temperature=0.2"
QUIET = "model.dropout=0"


class Holding(PoolerOptions, TwiceOptions):
    pass


def test_a_loss_of_losses_is_what_its_numbers_say(encoder: str, folder: Path) -> None:
    plain = POOL + '[[loss]]\nuse = "infonce"\nin_batch = "both"\ntemperature = 0.2\n'
    alone = Bench(encoder, folder, plain, QUIET)
    held = Bench(encoder, folder, INNER, QUIET, COLD)
    one, several = alone.step(), held.step()
    assert several.loss is not None and one.loss is not None
    torch.testing.assert_close(several.loss, 2 * one.loss)
    for name, gradient in alone.gradients.items():
        torch.testing.assert_close(held.gradients[name], 2 * gradient, rtol=1e-4, atol=1e-6)
    path = "loss.twice.inner.inner"
    assert list(held.assembly.of("loss")) == ["twice"] and path in held.assembly.parts
    assert held.part(path).options.in_batch == "both", "it has the options of its holder"


def test_weights_of_a_held_part_are_trained_once(encoder: str, folder: Path) -> None:
    bench = Bench(encoder, folder, HELD, "loss.twice.inner=bias")
    bench.step()
    names = [name for name in bench.optimizer.named if name.startswith("loss.")]
    assert names == ["loss.twice.inner.scale"]
    assert bench.gradients[names[0]].abs() > 0


def test_what_a_run_writes_composes_the_same(encoder: str, folder: Path) -> None:
    run = composed(encoder, INNER, COLD, folder=folder)
    (loss,) = as_recipe(run)["loss"]
    written = {name: loss["inner"][name] for name in ("use", "times")}
    assert written == {"use": "cse-small/twice", "times": 0.5} and loss["in_batch"] == "both"
    assert loss["inner"]["inner"] == {"use": "infonce", "temperature": 0.2}
    again = composed(encoder, dump_recipe(run), folder=folder)
    assert as_recipe(again)["loss"] == [loss]
    assert [part.path for part in again.parts] == [part.path for part in run.parts]


@pytest.mark.parametrize(
    ("sets", "says"),
    [
        ("loss.twice.inner=nothing", "loss.twice.inner: unknown loss (got 'nothing')"),
        ("loss.twice.inner.heat=1", "loss.twice.inner.heat: unknown option"),
        ("loss.twice.inner.temperature=cold", "loss.twice.inner.temperature: must be a number"),
        ("loss.twice.inner.level=input", "write it there: --loss.twice.level"),
        ("loss.twice.inner=guess", "reads token states, which only the step gives"),
        ("loss.twice.inner=graded", "score"),
        ("loss.twice.negatives=none", "a contrastive loss needs negatives"),
    ],
)
def test_a_held_part_is_checked_as_any_is(encoder: str, folder: Path, sets: str, says: str) -> None:
    with pytest.raises((CseError, CseErrors)) as refused:
        composed(encoder, HELD, sets, folder=folder)
    assert says in str(refused.value)


def test_a_pooler_holds_no_part(
    encoder: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert issubclass(Holding, LossOptions)
    from cse_defaults.basics import plugin

    mean = next(each for each in plugin.cse_poolers() if each.name == "mean")
    assert isinstance(mean, RowPoolerSpec)
    holding = replace(mean, options=f"{__name__}:Holding")
    monkeypatch.setattr(plugin, "cse_poolers", lambda: [holding])
    with pytest.raises((PartError, CseErrors), match="cannot hold a part"):
        composed(encoder, HELD, folder=folder)
