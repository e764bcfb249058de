"""The clients that users have against a real server process: serve_clients.py SERVER CASE. Exits 0 when the case holds."""

import contextlib
import io
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import urllib.error
import urllib.request

import msgpack
import numpy as np
import websockets.exceptions
import websockets.sync.client
import zmq
from openpi_client import msgpack_numpy
from openpi_client.websocket_client_policy import WebsocketClientPolicy

SERVER = sys.argv[1]
PATIENCE = 20.0
TOKEN = "correct-horse-battery"


@contextlib.contextmanager
def server(**options):
    words = [SERVER]
    for name, value in options.items():
        words += ["--" + name.replace("_", "-"), str(value)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        assert line.startswith("port "), line
        yield Running(int(line.split()[1]), process)
    finally:
        process.stdin.close()
        try:
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()


class Running:
    def __init__(self, port, process):
        self.port, self.process = port, process

    def websocket(self, **options):
        return websockets.sync.client.connect(f"ws://127.0.0.1:{self.port}", compression=None, max_size=None, **options)

    def status(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/status", timeout=PATIENCE) as reply:
            return json.load(reply)

    def bare(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)


def image(value, shape=(8, 10, 3)):
    return np.full(shape, value, dtype=np.uint8)


def droid(colour=10, joints=None, prompt="pick up", **more):
    joints = np.arange(7, dtype=np.float32) if joints is None else joints
    return {"observation/exterior_image_0_left": image(colour), "observation/exterior_image_1_left": image(colour + 1),
            "observation/wrist_image_left": image(colour + 2), "observation/joint_position": joints,
            "observation/cartesian_position": np.zeros(6), "observation/gripper_position": np.array([0.5]), "prompt": prompt, **more}


def openpi(colour=10, joints=None, prompt="pick up"):
    joints = np.arange(7, dtype=np.float32) if joints is None else joints
    return {"observation/exterior_image_1_left": image(colour), "observation/exterior_image_2_left": image(colour + 1),
            "observation/wrist_image_left": image(colour + 2), "observation/joint_position": joints,
            "observation/gripper_position": np.array([0.5], dtype=np.float32), "prompt": prompt}


def check(actual, wanted):
    assert np.array_equal(actual, np.asarray(wanted, dtype=np.float32)), f"{actual} is not {wanted}"


def ask(client, request):
    client.send(msgpack_numpy.packb(request))
    reply = client.recv(PATIENCE)
    return reply if isinstance(reply, str) else msgpack_numpy.unpackb(reply)


def dreamzero():
    """Configuration, one frame then four, a changed session, reset, and the view names of 6.10."""
    with server() as s, s.websocket() as client:
        config = msgpack_numpy.unpackb(client.recv(PATIENCE))
        assert config == {"image_resolution": [180, 320], "needs_wrist_camera": True, "n_external_cameras": 2, "needs_stereo_camera": False,
                          "needs_session_id": True, "action_space": "joint_position"}, config
        first = ask(client, droid(10, endpoint="infer", session_id="a"))
        assert first.shape == (6, 8) and first.dtype == np.float32
        check(first[0], [0, 1, 2, 3, 4, 5, 6, 0.5])
        check(first[1], [1, 1, 10, 11, 12, 10, 7, 1])
        check(ask(client, droid(20, endpoint="infer", session_id="a"))[1], [4, 2, 20, 21, 22, 10, 7, 1])
        check(ask(client, droid(30, session_id="a"))[1], [4, 3, 30, 31, 32, 10, 7, 1])
        several = droid(0, session_id="a")
        several["observation/exterior_image_0_left"] = np.stack([image(v) for v in (41, 42, 43, 44, 45)])
        check(ask(client, several)[1], [4, 4, 45, 1, 2, 42, 7, 1])
        check(ask(client, droid(50, session_id="b"))[1], [1, 1, 50, 51, 52, 50, 7, 1])
        assert ask(client, {"endpoint": "reset"}) == "reset successful"
        check(ask(client, droid(60, session_id="b"))[1], [1, 1, 60, 61, 62, 60, 7, 1])


def openpi_client():
    """openpi-client itself: metadata, two calls, server_timing, an error."""
    with server(protocol="openpi") as s:
        policy = WebsocketClientPolicy("127.0.0.1", s.port)
        metadata = policy.get_server_metadata()
        assert metadata["action_dim"] == 8 and metadata["action_horizon"] == 6, metadata
        first = policy.infer(openpi())
        assert first["actions"].shape == (6, 8) and list(first["server_timing"]) == ["infer_ms"], first
        check(first["actions"][1], [1, 1, 10, 11, 12, 10, 7, 1])
        second = policy.infer(openpi(20))
        check(second["actions"][1], [4, 2, 20, 21, 22, 10, 7, 1])
        assert set(second["server_timing"]) == {"infer_ms", "prev_total_ms"} and second["server_timing"]["prev_total_ms"] >= 0
        together = openpi()
        del together["observation/joint_position"], together["observation/gripper_position"]
        together["observation/state"] = np.arange(8, dtype=np.float64)
        check(policy.infer(together)["actions"][0], np.arange(8))
        bad = openpi()
        del bad["observation/wrist_image_left"]
        try:
            policy.infer(bad)
            raise AssertionError("a request without an image was answered")
        except RuntimeError as error:
            assert "wrist_image_left is missing" in str(error), error
        try:
            policy.infer(openpi())
            raise AssertionError("the connection outlived an error")
        except websockets.exceptions.ConnectionClosed as closed:
            assert closed.rcvd.code == 1011, closed
        with urllib.request.urlopen(f"http://127.0.0.1:{s.port}/healthz", timeout=PATIENCE) as reply:
            assert reply.status == 200 and reply.read() == b"OK\n"
        assert s.status()["errors"] == 0  # the service never saw the bad request


def action_keys():
    """Every form of --action-key."""
    for key, pick in {"array": lambda r: r, "actions": lambda r: r["actions"],
                      "keys": lambda r: np.concatenate([r["action.joint_position"], r["action.gripper_position"]], axis=1)}.items():
        for protocol, request in (("dreamzero", droid()), ("openpi", openpi())):
            with server(protocol=protocol, action_key=key) as s, s.websocket() as client:
                client.recv(PATIENCE)
                check(pick(ask(client, request))[0], [0, 1, 2, 3, 4, 5, 6, 0.5])


def pack_groot(value):
    def default(obj):
        out = io.BytesIO()
        np.save(out, obj, allow_pickle=False)
        return {"__ndarray_class__": True, "as_npy": out.getvalue()}

    return msgpack.packb(value, default=default)


def unpack_groot(data):
    def hook(obj):
        if "__ndarray_class__" in obj:
            return np.load(io.BytesIO(obj["as_npy"]), allow_pickle=False)
        return obj

    return msgpack.unpackb(data, object_hook=hook)


class GrootClient:
    def __init__(self, port, **more):
        self.context, self.more = zmq.Context.instance(), more
        self.socket = self.context.socket(zmq.REQ)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.RCVTIMEO, int(PATIENCE * 1000))
        self.socket.connect(f"tcp://127.0.0.1:{port}")

    def call(self, endpoint=None, data=None):
        request = dict(self.more)
        if endpoint:
            request["endpoint"] = endpoint
        if data is not None:
            request["data"] = data
        self.socket.send(pack_groot(request))
        return unpack_groot(self.socket.recv())

    def close(self):
        self.socket.close()


def groot_nested(colours=(10, 50), prompt=("pick up", "open")):
    views = ["exterior_image_1_left", "exterior_image_2_left", "wrist_image_left"]
    return {"video": {view: np.stack([image(c + i)[None] for c in colours]) for i, view in enumerate(views)},
            "state": {"joint_position": np.stack([np.arange(7, dtype=np.float32)[None] + i for i in range(len(colours))]),
                      "gripper_position": np.full((len(colours), 1, 1), 0.5, dtype=np.float32)},
            "language": {"task": [[p] for p in prompt]}}


def groot():
    """Every endpoint over pyzmq; a batch of two robots in one request."""
    with server(protocol="groot") as s:
        client = GrootClient(s.port)
        assert client.call("ping") == {"status": "ok", "message": "Server is running"}
        modality = client.call("get_modality_config")
        assert modality["state"]["as_json"]["modality_keys"] == ["joint_position", "gripper_position"], modality
        action, info = client.call("get_action", {"observation": groot_nested(), "options": None})
        assert info == {} and action["joint_position"].shape == (2, 6, 7) and action["gripper_position"].shape == (2, 6, 1), action
        check(action["joint_position"][:, 0], [np.arange(7), np.arange(7) + 1])
        check(action["joint_position"][:, 1], [[1, 1, 10, 11, 12, 10, 7], [1, 1, 50, 51, 52, 50, 4]])
        check(action["gripper_position"][:, 1], [[2], [2]])  # both in one call of the policy
        action, _ = client.call("get_action", {"observation": groot_nested((20, 60)), "options": None})
        check(action["joint_position"][:, 1], [[4, 2, 20, 21, 22, 10, 7], [4, 2, 60, 61, 62, 50, 4]])
        assert client.call("reset", {"options": None}) == {}
        flat = {"video.exterior_image_1_left": image(1)[None], "video.exterior_image_2_left": image(2)[None], "video.wrist_image_left": image(3)[None],
                "state.joint_position": np.arange(7, dtype=np.float64)[None], "state.gripper_position": np.array([[0.5]]),
                "annotation.human.task_description": ["pick up"]}
        action, _ = client.call(None, flat)
        check(action["action.joint_position"][1], [1, 1, 1, 2, 3, 1, 7])
        del flat["state.gripper_position"]
        error = client.call("get_action", flat)["error"]
        assert "the state gripper_position is missing" in error, error
        assert "kill is off" in client.call("kill")["error"]
        assert "Unknown endpoint" in client.call("fly")["error"]
        assert client.call("ping")["status"] == "ok"
        client.close()
    with server(protocol="groot", allow_kill=1) as s:
        client = GrootClient(s.port)
        assert client.call("kill")["status"] == "ok"
        assert s.process.wait(PATIENCE) == 0
        client.close()


def tokens():
    """Nothing without the token; both spellings of the header; api_token of GR00T."""
    with server(protocol="openpi", token=TOKEN) as s:
        for headers in ({}, {"Authorization": "Bearer wrong-horse-battery"}, {"Authorization": "Basic " + TOKEN}):
            try:
                s.websocket(additional_headers=headers)
                raise AssertionError(f"let in with {headers}")
            except websockets.exceptions.InvalidStatus as refused:
                assert refused.response.status_code == 401
        with s.websocket(additional_headers={"Authorization": "Bearer " + TOKEN}) as client:
            client.recv(PATIENCE)
        assert WebsocketClientPolicy("127.0.0.1", s.port, api_key=TOKEN).infer(openpi())["actions"].shape == (6, 8)
        try:
            s.status()
            raise AssertionError("/status without the token")
        except urllib.error.HTTPError as refused:
            assert refused.code == 401
    with server(protocol="groot", token=TOKEN) as s:
        for more in ({}, {"api_token": "wrong"}):
            client = GrootClient(s.port, **more)
            assert "Unauthorized" in client.call("ping")["error"]
            client.close()
        client = GrootClient(s.port, api_token=TOKEN)
        assert client.call("ping")["status"] == "ok"
        client.close()


def pings():
    """A ping is answered before the inference that was asked for first."""
    with server(slow_ms=2000) as s, s.websocket() as client:
        client.recv(PATIENCE)
        client.send(msgpack_numpy.packb(droid(prompt="slow")))
        assert client.ping().wait(PATIENCE)
        try:
            client.recv(timeout=0)
            raise AssertionError("the reply came before the pong")
        except TimeoutError:
            pass
        assert msgpack_numpy.unpackb(client.recv(PATIENCE)).shape == (6, 8)


def deadlines():
    """A request that takes too long is answered with an error; the server goes on."""
    with server(slow_ms=2000, request_timeout_ms=300) as s:
        with s.websocket() as client:
            client.recv(PATIENCE)
            error = ask(client, droid(prompt="slow"))
            assert isinstance(error, str) and error.startswith("deadline_exceeded"), error
        status = s.status()
        assert status["late"] == 1, status
    with server(queue=1, slow_ms=2000) as s:
        clients = [s.websocket() for _ in range(4)]
        for client in clients:
            client.recv(PATIENCE)
            client.send(msgpack_numpy.packb(droid(prompt="slow")))
        replies = [client.recv(PATIENCE) for client in clients]
        refused = [r for r in replies if isinstance(r, str)]
        assert 2 <= len(refused) <= 3 and all(r.startswith("resource_exhausted") for r in refused), replies
        for client in clients:
            client.close()


def sessions():
    """Eight robots at once keep their own state; the ninth is turned away."""
    with server(max_sessions=8) as s:
        clients = [s.websocket() for _ in range(8)]
        for client in clients:
            client.recv(PATIENCE)
        try:
            s.websocket()
            raise AssertionError("a ninth client was let in")
        except websockets.exceptions.InvalidStatus as refused:
            assert refused.response.status_code == 503
        failures = []

        def robot(index):
            try:
                for call in range(1, 21):
                    joints = np.full(7, index, dtype=np.float32)
                    actions = ask(clients[index], droid(index * 20, joints=joints, session_id="same name"))
                    check(actions[0], [index] * 7 + [0.5])
                    check(actions[1][:3], [1 if call == 1 else 4, call, index * 20])
            except Exception as failure:
                failures.append(failure)

        threads = [threading.Thread(target=robot, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        assert not failures, failures
        status = s.status()
        assert status["rows"] == 160 and status["sessions"] == 8, status
        for client in clients:
            client.close()


class GoodClient:
    """Asks without a pause, in a thread, until it is told to stop."""

    def __init__(self, ask_once):
        self.ask_once, self.stop, self.served, self.failure = ask_once, threading.Event(), 0, None
        self.progress = threading.Condition()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        try:
            while not self.stop.is_set():
                self.ask_once()
                with self.progress:
                    self.served += 1
                    self.progress.notify_all()
        except Exception as failure:
            self.failure = failure

    def wait_for_more(self, count=5):
        with self.progress:
            goal = self.served + count
            assert self.progress.wait_for(lambda: self.served >= goal or self.failure, PATIENCE), "the good client is not served"
        assert self.failure is None, self.failure

    def finish(self):
        self.stop.set()
        self.thread.join(PATIENCE)
        assert self.failure is None, self.failure


UPGRADE = (b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
           b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")


def upgraded(s):
    bare = s.bare()
    bare.sendall(UPGRADE)
    reply = b""
    while b"\r\n\r\n" not in reply:
        reply += bare.recv(4096)
    assert b" 101 " in reply, reply
    return bare


def frame(payload, opcode=2):
    length = struct.pack("!BB", 0x80 | opcode, 0x80 | 127) + struct.pack("!Q", len(payload))
    return length + b"\0\0\0\0" + payload


def ends(bare):
    """True once the server closed the connection."""
    bare.settimeout(PATIENCE)
    try:
        while bare.recv(65536):
            pass
    except ConnectionError:
        pass
    return True


def hostile_websocket():
    """What a client does wrong ends its own connection; a good one is served all the time."""
    with server(handshake_timeout_ms=500, write_timeout_ms=500, max_request_bytes=1 << 20) as s, s.websocket() as client:
        client.recv(PATIENCE)
        good = GoodClient(lambda: check(ask(client, droid())[0], [0, 1, 2, 3, 4, 5, 6, 0.5]))
        good.wait_for_more()
        garbage = s.bare()
        garbage.sendall(os.urandom(20000))
        assert ends(garbage)
        good.wait_for_more()
        slow_upgrade = [s.bare() for _ in range(100)]
        for bare in slow_upgrade:
            try:
                bare.sendall(b"GET / HTTP/1.1\r\nX: ")
            except ConnectionError:
                pass
        good.wait_for_more()
        assert all(ends(bare) for bare in slow_upgrade)
        four_gib = upgraded(s)
        four_gib.sendall(b"\x82\xff" + struct.pack("!Q", 4 << 30) + b"\0\0\0\0")
        assert ends(four_gib)
        good.wait_for_more()
        half = upgraded(s)  # stays until the end of the test: nobody waits for it
        half.sendall(frame(b"x" * 1000)[:100])
        unmasked = upgraded(s)
        unmasked.sendall(b"\x82\x02hi")
        assert ends(unmasked)
        for payload in (b"", b"\xc1", b"\xdd\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff", b"\x91" * 1000, os.urandom(1000),
                        msgpack_numpy.packb(droid(endpoint="fly")), msgpack_numpy.packb({"prompt": "nothing else"}),
                        msgpack.packb({b"__ndarray__": True, b"data": b"", b"dtype": "<f8", b"shape": [1 << 31, 1 << 31]}),
                        msgpack_numpy.packb(droid(joints=np.full(7, np.nan))), msgpack_numpy.packb(droid(prompt="nan")),
                        msgpack_numpy.packb(droid(joints=np.zeros(6))), msgpack_numpy.packb(droid(prompt="throw"))):
            with s.websocket() as bad:
                bad.recv(PATIENCE)
                bad.send(payload)
                error = bad.recv(PATIENCE)
                assert isinstance(error, str), (payload[:40], error)
                try:
                    bad.recv(PATIENCE)
                    raise AssertionError("open after an error")
                except websockets.exceptions.ConnectionClosed as closed:
                    assert closed.rcvd.code == 1011, closed
        with s.websocket() as bad:
            bad.recv(PATIENCE)
            bad.send("text")
            assert "text frame" in bad.recv(PATIENCE)
        good.wait_for_more()
        deaf = upgraded(s)  # asks for replies and never reads one
        deaf.setblocking(False)
        request = frame(msgpack_numpy.packb(droid()))
        for _ in range(2000):
            try:
                if deaf.send(request) < len(request):
                    break
            except OSError:
                break
        good.wait_for_more(20)
        good.finish()
        with urllib.request.urlopen(f"http://127.0.0.1:{s.port}/healthz", timeout=PATIENCE) as reply:
            assert reply.read() == b"OK\n"
        for bare in (half, deaf):
            bare.close()


def zmtp_greeting():
    return b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\0" + b"NULL".ljust(20, b"\0") + b"\0" * 32


def zmtp_ready():
    body = b"\x05READY\x0bSocket-Type" + struct.pack("!I", 3) + b"REQ"
    return b"\x04" + bytes([len(body)]) + body


def hostile_zeromq():
    """The same for ZeroMQ."""
    with server(protocol="groot", handshake_timeout_ms=500, max_request_bytes=1 << 20) as s:
        client = GrootClient(s.port)
        observation = {"observation": groot_nested((10,), ("pick up",)), "options": None}
        good = GoodClient(lambda: check(client.call("get_action", observation)[0]["joint_position"][0, 0], np.arange(7)))
        good.wait_for_more()
        garbage = s.bare()
        garbage.sendall(os.urandom(20000))
        silent = s.bare()
        half = s.bare()
        half.sendall(zmtp_greeting()[:20])
        assert ends(garbage) and ends(silent) and ends(half)
        good.wait_for_more()
        four_gib = s.bare()
        four_gib.sendall(zmtp_greeting() + zmtp_ready() + b"\x01\x00" + b"\x02" + struct.pack("!Q", 4 << 30))
        assert ends(four_gib)
        good.wait_for_more()
        bad = GrootClient(s.port)
        for payload in (b"", b"\xc1", b"\xdd\xff\xff\xff\xff", os.urandom(1000), pack_groot([1, 2]), pack_groot({"data": {}}),
                        pack_groot({"endpoint": "get_action"}), pack_groot({"data": 3}),
                        msgpack.packb({"data": {"x": {"__ndarray_class__": True, "as_npy": b"\x93NUMPY\x01\x00\xff\xff"}}})):
            bad.socket.send(payload)
            assert "error" in unpack_groot(bad.socket.recv()), payload[:40]
        bad.close()
        flood = zmq.Context.instance().socket(zmq.DEALER)
        flood.setsockopt(zmq.LINGER, 0)
        flood.connect(f"tcp://127.0.0.1:{s.port}")
        for _ in range(500):
            try:
                flood.send_multipart([b"", pack_groot({"data": observation})], zmq.DONTWAIT)
            except zmq.Again:
                break
        good.wait_for_more(20)
        flood.close()
        good.finish()
        assert client.call("ping")["status"] == "ok"
        client.close()


if __name__ == "__main__":
    cases = [dreamzero, openpi_client, action_keys, groot, tokens, pings, deadlines, sessions, hostile_websocket, hostile_zeromq]
    {case.__name__: case for case in cases}[sys.argv[2]]()
    print("ok", flush=True)
    os._exit(0)  # not the threads of client libraries
