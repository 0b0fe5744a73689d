"""The plugin's records, and that announcing them costs nothing."""

from cse_starter import plugin
from cse_testkit import PluginSuite


class TestPlugin(PluginSuite):
    distribution = "cse-starter"


def test_records_say_what_they_are() -> None:
    (encoder,) = plugin.cse_encoders()
    assert (encoder.name, encoder.path, encoder.synthetic) == (
        "starter",
        "cse_starter:encoder",
        False,
    )
    assert "small" in encoder.summary
    (dataset,) = plugin.cse_datasets()
    assert (dataset.name, dataset.synthetic) == ("starter", True)
    assert "synthetic" in dataset.summary
