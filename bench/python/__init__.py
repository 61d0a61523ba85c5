"""The Python peers of `packds bench formats`: the same images from every format, one process per run."""
