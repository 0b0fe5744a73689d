"""Choosing the device and the number format."""

import pytest
import torch

from cse_core.errors import CseError
from cse_core.runtime import device as precision
from cse_core.runtime.device import resolve_device, resolve_precision

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


def test_autocast_casts_products_only_where_asked():
    weight = torch.randn(4, 4)
    with resolve_precision("bf16", CPU).autocast():
        assert (weight @ weight).dtype == torch.bfloat16
    with resolve_precision("fp32", CPU).autocast():
        assert (weight @ weight).dtype == torch.float32


def test_an_unknown_format_is_refused():
    with pytest.raises(CseError, match="known: auto, fp32") as raised:
        resolve_precision("fp16", CPU)
    assert raised.value.where == "train.precision"
    assert raised.value.value == "fp16"


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
