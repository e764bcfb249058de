"""A worker: connects to the hub of a simulator, says what it has, and steps the environments that it is leased."""
import os
import select
import signal
import threading
import time

import zmq

from . import wire
from .direct import Direct
from .host import FAILURES, Rows
from .said import Said, one_line, what_failed

FEATURES = ["render", "shm"]
BEAT_SECONDS = 1.0
HUB_SILENCE_SECONDS = 10.0
# that a worker which a simulator started looks for it
HUB_ABSENCE_SECONDS = 30.0
LONGEST_BACK_OFF_SECONDS = 30.0
POLL_MILLISECONDS = 500
# a worker stays awake between questions that come within this time of its answers
AT_ONCE_SECONDS = 200e-6


def host_id():
    """What is the same for two processes that see each other's process ids."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return f"{file.read().strip()}/{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return ""


class Refused(Exception):
    """The hub does not take this worker."""


class Beats:
    """The second thread: tells the hub that this process lives and how far it is, and notices when the hub does not.
    A simulator that holds the interpreter's lock holds this thread as well: such a time is not the hub's silence."""

    def __init__(self, context, endpoint):
        self._context, self._endpoint = context, endpoint
        self.session, self.progress = 0, 0
        self._silence = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def hub_is_silent(self):
        return self._silence > HUB_SILENCE_SECONDS

    def begin(self, session):
        """0: none."""
        self._silence = 0.0
        self.session = session

    def stop(self):
        self._over.set()
        self._thread.join()

    def _run(self):
        socket = connect(self._context, self._endpoint)
        while not self._over.wait(BEAT_SECONDS):
            self._silence += BEAT_SECONDS  # however late this is
            while socket.poll(0):
                socket.recv_multipart()
                self._silence = 0.0
            if self.session and socket.poll(0, zmq.POLLOUT):
                socket.send_multipart(wire.pack("PING", self.session, 0, {"progress": self.progress}))
        socket.close()


def connect(context, endpoint):
    socket = context.socket(zmq.DEALER)
    socket.setsockopt(zmq.LINGER, 500)
    socket.setsockopt(zmq.RECONNECT_IVL, 100)
    socket.setsockopt(zmq.RECONNECT_IVL_MAX, 2000)
    # a hub that is away gets nothing of before when it is back
    socket.setsockopt(zmq.IMMEDIATE, 1)
    socket.setsockopt(zmq.SNDTIMEO, 5000)
    socket.setsockopt(zmq.RCVTIMEO, 500)
    socket.connect(endpoint)
    return socket


class Worker:
    """`lasts`: what it outlives: "simulator", none; "hub", a hub that falls silent; "all", also one that ends."""

    def __init__(self, kind, endpoint, name, options, spec, lasts):
        self._kind, self._endpoint, self._lasts = kind, endpoint, lasts
        self._hello = {"env": kind.env_id, "name": name, "pid": os.getpid(), "host": host_id(), "features": FEATURES,
                       "options": options, "spec": spec}
        self._context = zmq.Context()
        self._beats = Beats(self._context, endpoint)
        self._leases = {}
        # connections of leases, by descriptor; the poll object waits for them and for the hub's socket
        self._directs, self._poll = {}, None
        self._is_asked_at_once = False
        self._session = 0
        self._stopping = False
        signal.signal(signal.SIGTERM, self._stop)

    def _stop(self, *_):
        self._stopping = True

    def run(self):
        """Serves until it is told to end. Raises Refused, and Said where the simulator that started it is not found."""
        back_off, seen = 0.5, time.monotonic()
        while not self._stopping:
            socket = connect(self._context, self._endpoint)
            try:
                if self._join(socket, back_off):
                    back_off = 0.5
                    self._serve(socket)
                    seen = time.monotonic()
                    if self._lasts == "simulator" and self._beats.hub_is_silent():
                        raise Said(f"the simulator at {self._endpoint} has been silent for {HUB_SILENCE_SECONDS:.0f} s")
                elif self._lasts == "simulator" and time.monotonic() - seen > HUB_ABSENCE_SECONDS:
                    raise Said(f"there was no simulator at {self._endpoint} for {HUB_ABSENCE_SECONDS:.0f} s")
                else:
                    back_off = min(2 * back_off, LONGEST_BACK_OFF_SECONDS)
            except zmq.Again:
                pass  # the hub is gone; the next round finds it again
            finally:
                self._leave(socket)
        self._beats.stop()
        self._context.term()  # what was said last is sent

    def _join(self, socket, patience):
        """Whether the hub welcomed this worker."""
        if not socket.poll(patience * 1000, zmq.POLLOUT):
            return False
        socket.send_multipart(wire.pack("HELLO", 0, 0, self._hello))
        if not socket.poll(max(patience, 2) * 1000):
            return False
        kind, session, _, body = wire.unpack(socket.recv_multipart())
        if kind == "REJECT":
            raise Refused(body.get("reason", "no reason given"))
        if kind != "WELCOME":
            return False
        self._session = session
        self._beats.begin(session)
        return True

    def _leave(self, socket):
        if self._session and self._stopping:
            socket.setsockopt(zmq.SNDTIMEO, 0)
            try:
                socket.send_multipart(wire.pack("BYE", self._session, 0, {"reason": "stopped"}))
            except zmq.Again:
                pass
        self._session = self._beats.session = 0  # the silence that was stays to be read
        for rows in self._leases.values():
            rows.close()
        self._leases.clear()
        for direct in self._directs.values():
            direct.close()
        self._directs.clear()
        socket.close()

    def _serve(self, socket):
        def say(*message):
            socket.send_multipart(wire.pack(*message))

        self._poll = select.poll()
        self._poll.register(socket.getsockopt(zmq.FD), select.POLLIN)
        while not self._stopping and not self._beats.hub_is_silent():
            # a ZeroMQ socket's descriptor tells that something changed, not that a message waits
            if socket.getsockopt(zmq.EVENTS) & zmq.POLLIN:
                try:
                    message = wire.unpack(socket.recv_multipart())
                except wire.Malformed as error:
                    say("ERR", self._session, 0, {"text": one_line(error), "fatal": False})
                    continue
                if not self._take(message, say):
                    return
                continue
            for number, _ in self._wait():
                if number in self._directs:
                    self._serve_direct(self._directs[number])

    def _wait(self):
        """Waits, and returns what poll() does. The worker stays awake as long as questions come at once, since to wake a
        thread takes as long as some steps do."""
        began = time.perf_counter()
        ready = self._poll.poll(0)
        while not ready and self._is_asked_at_once and time.perf_counter() - began < AT_ONCE_SECONDS:
            os.sched_yield()
            ready = self._poll.poll(0)
        ready = ready or self._poll.poll(POLL_MILLISECONDS)
        self._is_asked_at_once = time.perf_counter() - began < AT_ONCE_SECONDS
        return ready

    def _serve_direct(self, direct):
        try:
            self._take(direct.receive(), direct.send)
        except (EOFError, OSError, wire.Malformed):
            # the lease or the session is over; a message by ZeroMQ says which
            self._poll.unregister(direct)
            del self._directs[direct.fileno()]
            direct.close()

    def _connect(self, name):
        """Connects for a lease to the simulator's address. False: the simulator is not reached."""
        try:
            direct = Direct(name)
        except OSError:
            return False  # it listens in another network namespace
        self._directs[direct.fileno()] = direct
        self._poll.register(direct, select.POLLIN)
        return True

    def _take(self, message, say):
        """Answers a message by `say`. False: it ended the session."""
        kind, session, request, body = message
        if session != self._session:
            return True
        if kind == "DRAIN":
            say("BYE", session, 0, {"reason": "drained"})
            self._session = 0
            self._stopping = self._lasts != "all"
            return False
        if kind == "ERR" and body.get("fatal"):
            return False  # another HELLO begins a new one
        answer, content = self._answer(kind, body)
        if answer is not None:
            say(answer, session, request, content)
        self._beats.progress += 1
        return True

    def _answer(self, kind, body):
        try:
            if kind == "STEP":
                rows = self._leases[body["lease"]]
                return "RESULT", rows.step(*rows.asked(body, "actions"))
            if kind == "RESET":
                rows = self._leases[body["lease"]]
                return "RESULT", rows.reset(*rows.asked(body, "seeds"))
            if kind == "LEASE":
                self._leases[body["lease"]] = Rows(self._kind, body["rows"])
                return "LEASED", {}
            if kind == "SHARE":
                rows = self._leases[body["lease"]]
                fd = rows.share(body["bytes"], body["nonce"], body["arrays"])
                return "RESULT", {"fd": fd, "connected": "connect" in body and self._connect(body["connect"])}
            if kind == "RELEASE":
                rows = self._leases.pop(body["lease"], None)
                if rows is not None:
                    rows.close()
                return None, None
            if kind == "RENDER":
                rows = self._leases[body["lease"]]
                return "RESULT", {"rgb": rows.render(body["row"], body["width"], body["height"])}
            if kind == "EXPERT":
                return "RESULT", {"action": self._leases[body["lease"]].expert(body["row"])}
            if kind == "PONG":
                return None, None
        except FAILURES as error:
            return "ERR", {"text": what_failed(error), "fatal": False}
        return "ERR", {"text": f"there is no message '{kind}'", "fatal": False}
