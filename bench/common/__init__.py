"""What the comparisons share: the machine, processes, and loops of NumPy over a peer's memory."""
