"""Sentences that a language model wrote: hard negatives that may be false, and ranked lists."""
