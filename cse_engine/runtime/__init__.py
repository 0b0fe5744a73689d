"""Process and machine: devices, number formats, processes, seeds.

Names of devices and number formats go in and come out as ``torch.device`` and ``Precision``;
counters come out as seeds. ``distributed.join`` lets a process meet the others.
"""
