"""Processes that a launcher started join; one alone does not."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

from cse_core.errors import CseError
from cse_core.runtime import distributed
from cse_core.runtime.distributed import join, rank_and_size

CPU = torch.device("cpu")


@pytest.mark.parametrize("size", [None, "1"])
def test_one_process_joins_nobody(monkeypatch: pytest.MonkeyPatch, size: str | None) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    if size is not None:
        monkeypatch.setenv("WORLD_SIZE", size)
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
