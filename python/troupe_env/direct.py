"""The connection of one lease beside ZeroMQ: a Unix socket that the simulator's stepping thread itself reads and writes
(docs/bridge.md#messages)."""
import socket
import struct

from . import wire

SIZE = struct.Struct("<I")


class Direct:
    """Connects to `name`: '@' and an address of the abstract namespace of Unix sockets. Raises OSError where no simulator
    listens at it."""

    def __init__(self, name):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.connect("\0" + name[1:])
        except BaseException:
            self.close()
            raise

    def fileno(self):
        return self._socket.fileno()

    def receive(self):
        """(kind, session, request, body) of the next message. Raises EOFError where the simulator has closed it, and
        wire.Malformed."""
        return wire.unpack_content(self._read(*SIZE.unpack(self._read(SIZE.size))))

    def send(self, kind, session, request, body):
        content = wire.pack_content(kind, session, request, body)
        self._socket.sendall(SIZE.pack(len(content)) + content)

    def _read(self, size):
        part = self._socket.recv(size, socket.MSG_WAITALL)
        if len(part) < size:
            raise EOFError
        return part

    def close(self):
        self._socket.close()
