"""Spaces for classes of one's own that do without Gymnasium (python:MODULE:CLASS). Gymnasium's have the same
attributes, which is all that Troupe reads."""
import numpy as np


class Box:
    """Arrays of `shape` between `low` and `high`, numbers or arrays."""

    def __init__(self, low, high, shape=None, dtype=np.float32):
        self.shape = tuple(shape) if shape is not None else np.broadcast(np.asarray(low), np.asarray(high)).shape
        self.dtype = np.dtype(dtype)
        self.low = np.broadcast_to(np.asarray(low, self.dtype), self.shape)
        self.high = np.broadcast_to(np.asarray(high, self.dtype), self.shape)


class Discrete:
    """One of `n` whole numbers from `start` on."""

    def __init__(self, n, start=0):
        self.n, self.start, self.shape = int(n), int(start), ()


class Dict:
    """Spaces by name."""

    def __init__(self, spaces):
        self.spaces = dict(spaces)
