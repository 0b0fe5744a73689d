"""Process and machine: devices, processes, seeds, files that are whole, the reporter.

Names of devices and number formats go in and come out as ``torch.device`` and ``Precision``;
counters come out as seeds, paths as files that are there whole or not at all. ``distributed.join``
lets a process meet the others. ``Reporter`` hears how a run goes.
"""
