from __future__ import annotations

import pytest
import torch

from tests.fixtures.tiny import make_encoder


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    torch.set_num_threads(1)
    return make_encoder(tmp_path_factory.mktemp("tiny"))
