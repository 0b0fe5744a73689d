"""Functions that studies of several papers call: what is measured without training."""
