"""Code that the comparisons share: the machine, processes, and batches in reused buffers."""
