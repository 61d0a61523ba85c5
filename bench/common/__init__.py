"""Shared by the comparisons: the machine, processes, and NumPy loops over a peer's memory."""
