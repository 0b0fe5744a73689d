"""A plugin whose parts each break one promise of the contract, for tests of what a run says."""
