"""Process and machine: devices, processes, seeds, files that are whole, the reporter."""
