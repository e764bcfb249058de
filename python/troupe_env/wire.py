"""Messages between the hub in a simulator and its workers (docs/bridge.md#messages): two frames, a magic number and a
MessagePack map whose arrays are those of msgpack_numpy."""
import msgpack
import numpy as np

MAGIC = b"TRB1"
VERSION = [1, 1]


class Malformed(Exception):
    """Bytes that are no message."""


def _encode(value):
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "biuf":
            raise TypeError(f"an array of {value.dtype} cannot be sent")
        little = value.astype(value.dtype.newbyteorder("<"), copy=False)
        return {b"__ndarray__": True, b"data": little.tobytes(), b"dtype": little.dtype.str, b"shape": little.shape}
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} cannot be sent")


def _decode(pairs):
    if b"__ndarray__" not in pairs:
        return pairs
    dtype = np.dtype(pairs[b"dtype"])
    if dtype.kind not in "biuf":
        raise Malformed(f"an array of {dtype}")
    return np.frombuffer(pairs[b"data"], dtype).reshape(pairs[b"shape"])


def pack_content(kind, session, request, body):
    """The map of a message. `request` numbers what is asked; the answer repeats it."""
    return msgpack.packb({"v": VERSION, "t": kind, "s": session, "q": request, "b": body}, default=_encode)


def pack(kind, session, request, body):
    """The frames of a message."""
    return [MAGIC, pack_content(kind, session, request, body)]


def unpack_content(content):
    """(kind, session, request, body) of a message's map. Raises Malformed; keys that are unknown are ignored."""
    try:
        header = msgpack.unpackb(content, object_hook=_decode)
        if header["v"][0] != VERSION[0]:
            raise Malformed(f"a message of version {header['v']}; this is {VERSION}")
        return header["t"], header["s"], header["q"], header["b"]
    except Malformed:
        raise
    except Exception as error:  # whatever msgpack and NumPy say of bytes
        raise Malformed(f"no MessagePack map of a message: {error}") from error


def unpack(frames):
    """(kind, session, request, body) of a message's frames. Raises Malformed."""
    if len(frames) != 2 or frames[0] != MAGIC:
        raise Malformed(f"{len(frames)} frames without {MAGIC.decode()} in front")
    return unpack_content(frames[1])
