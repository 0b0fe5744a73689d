"""Device and number format, processes that a launcher started, and draws."""

from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.distributed as dist
from cse_testkit import make_setup
from torch import nn

from cse_core.errors import CseError
from cse_engine.runtime import device as precision
from cse_engine.runtime import distributed
from cse_engine.runtime.device import resolve_device, resolve_precision
from cse_engine.runtime.distributed import join, rank_and_size
from cse_engine.runtime.seeds import StepPosition
from cse_engine.step.context import Context

CPU = torch.device("cpu")


@pytest.mark.parametrize("flags", [set(), {"avx512_bf16"}, {"avx512_bf16", "amx_bf16"}])
def test_auto_takes_bf16_where_the_cpu_has_it(monkeypatch, flags):
    monkeypatch.setattr(precision, "cpu_flags", lambda: frozenset(flags))
    chosen = resolve_precision("auto", CPU)
    assert chosen.name == ("bf16" if flags else "fp32")
    assert chosen.dtype == (torch.bfloat16 if flags else None)
    assert ("amx_bf16" if "amx_bf16" in flags else "bf16") in chosen.why
    asked = resolve_precision("bf16", CPU)
    assert asked.dtype == torch.bfloat16
    assert ("expect no gain" in asked.why) == (not flags)


def test_flags_agree_with_the_kernel():
    assert precision.cpu_flags() <= {"amx_bf16", "avx512_bf16"}
    try:
        listed = open("/proc/cpuinfo").read().split()
    except OSError:
        pytest.skip("no /proc/cpuinfo on this system")
    assert set(precision.cpu_flags()) == {"amx_bf16", "avx512_bf16"} & set(listed)


def test_number_formats():
    weight = torch.randn(4, 4)
    with resolve_precision("bf16", CPU).autocast():
        assert (weight @ weight).dtype == torch.bfloat16
    with resolve_precision("fp32", CPU).autocast():
        assert (weight @ weight).dtype == torch.float32
    with pytest.raises(CseError, match="known: auto, fp32") as raised:
        resolve_precision("fp8", CPU)
    assert raised.value.where == "train.precision"
    assert raised.value.value == "fp8"


@pytest.mark.parametrize(("capability", "name"), [((7, 5), "fp32"), ((8, 0), "bf16")])
def test_auto_is_fp32_on_a_gpu_without_bf16(monkeypatch, capability, name):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "a GPU")
    assert resolve_precision("auto", torch.device("cuda")).name == name


def test_device(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert resolve_device() == CPU
    assert resolve_device("cpu") == CPU
    for name in ("cuda", "cuda:1", "rocket"):
        with pytest.raises(CseError) as raised:
            resolve_device(name)
        assert raised.value.where == "train.device"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert resolve_device("auto").type == "cuda"
    assert resolve_device("cuda:1").index == 1
    with pytest.raises(CseError, match="2 CUDA devices"):
        resolve_device("cuda:2")


def test_one_process_joins_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert join(CPU) == CPU and rank_and_size() == (0, 1)
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert join(CPU) == CPU and rank_and_size() == (0, 1)
    assert not dist.is_initialized()


def test_each_process_has_its_own_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    began, used = [], []
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", used.append)
    monkeypatch.setattr(distributed, "_rendezvous", lambda patience: None)
    monkeypatch.setattr(dist, "init_process_group", lambda backend, **how: began.append(backend))
    monkeypatch.setattr("atexit.register", lambda leave: None)
    assert join(torch.device("cuda")) == torch.device("cuda:1")
    assert began == ["nccl"] and used == [torch.device("cuda:1")]
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(CseError, match="2 CUDA devices"):
        join(torch.device("cuda"))


def test_each_place_of_a_run_has_draws_of_its_own() -> None:
    start = StepPosition(step=3, total_steps=10, epoch=0, round=1)

    def drawn(seed=0, position=start, rank=0, place=("positive",), name="a", shared=True):  # type: ignore[no-untyped-def]
        other = dict.fromkeys(("assembly", "training", "logged", "index", "rows", "device"))
        ctx: Any = Context(**vars(position), **other, seed=seed, rank=rank, place=place)
        fresh = ctx.generator(name, shared=shared)
        return tuple(torch.rand(4, generator=fresh).tolist())

    plain = drawn()
    same = [drawn(), drawn(rank=1), drawn(position=replace(start, epoch=1, total_steps=20))]
    assert same == [plain] * 3
    others = [
        drawn(seed=1), drawn(position=replace(start, step=4)), drawn(place=("anchor",)),
        drawn(position=replace(start, round=2)), drawn(name="b"), drawn(place=("positive", 1)),
        drawn(shared=False), drawn(shared=False, rank=1),
    ]  # fmt: skip
    assert len({plain, *others}) == 1 + len(others)


def test_layers_of_torch_draw_by_the_seed_of_the_run() -> None:
    def weights(seed: int, name: str = "layer") -> torch.Tensor:
        with make_setup(seed=seed).seeded(name):
            return nn.Linear(3, 2).weight.detach()

    before = torch.random.get_rng_state()
    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))
    assert not torch.equal(weights(1), weights(1, "other"))
    assert torch.equal(torch.random.get_rng_state(), before), "nobody else's draws change"
