"""What the machine and a launcher of processes say."""
