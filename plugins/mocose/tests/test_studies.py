"""Functions behind the paper's studies."""

import pytest
from cse_mocose.distance import distance, mean_age

from tests.fixtures.studies import definition, planned


def test_the_distances_beside_the_points_are_those_of_the_formula() -> None:
    for name in ("mocose/figure-2", "mocose/figure-3", "mocose/figure-12"):
        for point in definition(name).points:
            shown = point.columns
            meant = distance(shown["eta"], shown["size"], shown["batch"])
            assert shown["distance"] == pytest.approx(meant, abs=0.005)
            assert point.settings["branch.target.decay"] == f"cosine({shown['eta']:g},1)"
            assert point.settings["negatives.queue.size"] == shown["size"]
            assert point.settings["train.batch_size"] == shown["batch"]


def test_groups_of_studies_share_their_runs() -> None:
    seven, ten = planned("mocose/table-7"), planned("mocose/figure-10")
    assert len(set(seven.runs) & set(ten.runs)) == 4
    assert set(planned("mocose/table-3").runs) < set(planned("mocose/figure-7").runs)
    assert set(seven.runs) < set(planned("mocose/figure-11").runs)
    assert set(planned("mocose/figure-2").runs) == set(planned("mocose/figure-3").runs)


def test_the_mean_age_goes_to_its_limit() -> None:
    """A.11: ``sum (1 - eta) eta**i (i + 1)`` goes to ``1 / (1 - eta)``."""
    for eta in (0.5, 0.85, 0.99):
        few, many = (mean_age({"eta": eta, "terms": terms}) for terms in (10, 10_000))
        assert few["sum"] < many["sum"] == pytest.approx(many["limit"])
        assert many["limit"] == pytest.approx(1 / (1 - eta))
    with pytest.raises(ValueError, match="below 1"):
        mean_age({"eta": 1.0, "terms": 5})
