"""The comparison of packds with other loaders on the same images: what bench/peers.py is made of."""
