"""Memory that a worker shares with a simulator of its machine: a memfd for each lease, with arrays where the simulator
says. It has no name, so nothing is left of it when both have ended."""
import fcntl
import mmap
import os
import struct

import numpy as np

NONCE_BYTES = 8  # at the start of the memory: the simulator's nonce
F_ADD_SEALS, SEALS = 1033, 0x1 | 0x2 | 0x4  # no other seals, no shrinking, no growing


class LayoutError(Exception):
    """The simulator's arrays are not those of this worker's environments."""


def _places(offered, wanted, size):
    """{name: offset} of `offered` [[name, dtype, shape, offset]]. Raises LayoutError unless they are the `wanted`
    {name: array}, each by itself inside `size` bytes."""
    places, spans = {}, [(0, NONCE_BYTES)]
    for name, dtype, shape, offset in offered:
        like = wanted.get(name)
        if like is None or name in places or (dtype, tuple(shape)) != (like.dtype.newbyteorder("<").str, like.shape):
            raise LayoutError(f"an array {name} {dtype} {list(shape)}")
        if offset < 0 or offset % 8 or offset + like.nbytes > size:
            raise LayoutError(f"{name} at byte {offset} of {size}; it has {like.nbytes}")
        places[name] = offset
        if like.nbytes:
            spans.append((offset, offset + like.nbytes))
    if len(places) < len(wanted):
        raise LayoutError(f"no array {', '.join(sorted(set(wanted) - set(places)))}")
    spans.sort()
    if any(end > begin for (_, end), (begin, _) in zip(spans, spans[1:])):
        raise LayoutError("two arrays in one place")
    return places


class Shared:
    """`arrays` by name, in memory of `size` bytes; others map it through the descriptor `fd` of this process."""

    def __init__(self, size, nonce, offered, wanted):
        places = _places(offered, wanted, size)
        self.fd = os.memfd_create("troupe:lease", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(self.fd, size)
            fcntl.fcntl(self.fd, F_ADD_SEALS, SEALS)
            memory = mmap.mmap(self.fd, size)
        except BaseException:
            self.close()
            raise
        memory[:NONCE_BYTES] = struct.pack("<q", nonce)
        self.arrays = {name: np.frombuffer(memory, like.dtype, like.size, places[name]).reshape(like.shape)
                       for name, like in wanted.items()}

    def close(self):
        os.close(self.fd)
