"""Process and machine: what every other room may use, and what knows none of them.

Names of devices and number formats go in and come out as ``torch.device`` and ``Precision``;
counters come out as seeds; paths as files that are there whole or not at all; a process learns its
rank and joins the others. ``Reporter`` hears how a run goes.
"""
