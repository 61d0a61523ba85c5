"""Compares packds with other loaders on the same images, for bench/peers.py."""
