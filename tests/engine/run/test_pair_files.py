"""The pairs of a round in a file: what is written comes back, in its order."""

from pathlib import Path

import numpy as np

from cse_engine.run.pair_files import PAIRS, load_pairs, save_pairs


def test_columns_come_back(tmp_path: Path) -> None:
    texts = ["", "a b", "Größe", "句子", "x\n\ud800\U0001f600"]
    rows = np.array([4, 0, 3, 1, 2])
    pairs = {
        "text": rows[::-1],
        "positive": texts,
        "values:text": np.array([0.5, 1.0, 0.1, 2.0, -1.0], np.float32),
        "small": rows.astype(np.uint8),
    }
    save_pairs(tmp_path / PAIRS, pairs)
    found = load_pairs(tmp_path / PAIRS, list(pairs))
    assert list(found) == list(pairs)
    assert np.array_equal(found["text"], rows[::-1]) and found["positive"] == texts
    assert found["values:text"] == pairs["values:text"].tolist()
    assert getattr(found["small"], "dtype", None) == np.uint8
    before = (tmp_path / PAIRS).read_bytes()
    save_pairs(tmp_path / PAIRS, pairs)
    assert (tmp_path / PAIRS).read_bytes() == before
