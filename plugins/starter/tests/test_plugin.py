"""The plugin's records."""

from cse_starter import plugin
from cse_testkit import PluginSuite


class TestPlugin(PluginSuite):
    distribution = "cse-starter"


def test_the_encoder_was_trained_and_the_texts_are_made_up() -> None:
    (encoder,), (dataset,) = plugin.cse_models(), plugin.cse_sources()
    assert (encoder.synthetic, dataset.synthetic) == (False, True)
    assert "small" in encoder.summary and "synthetic" in dataset.summary
