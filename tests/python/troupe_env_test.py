"""The package python/troupe_env by itself: PYTHONPATH=.deps/clients python3 tests/python/troupe_env_test.py"""
import contextlib
import ctypes
import io
import json
import mmap
import os
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests/python")]
import numpy as np  # noqa: E402
import toy_envs  # noqa: E402
import zmq  # noqa: E402
from troupe_env import wire, worker  # noqa: E402
from troupe_env.adapters import robosuite_lift  # noqa: E402
from troupe_env.direct import Direct  # noqa: E402
from troupe_env.fields import Actions, fields_of  # noqa: E402
from troupe_env.host import Kind, Rows, read_options  # noqa: E402
from troupe_env.said import Said  # noqa: E402
from troupe_env.shared import LayoutError  # noqa: E402
from troupe_env.spaces import Box, Dict, Discrete  # noqa: E402


class WireTest(unittest.TestCase):
    def test_what_is_sent_comes_back(self):
        body = {"rows": np.arange(3, dtype=np.int32), "text": "é", "none": None, "number": np.float64(0.5)}
        kind, session, request, back = wire.unpack(wire.pack("STEP", 3, 4, body))
        self.assertEqual((kind, session, request, back["text"], back["number"]), ("STEP", 3, 4, "é", 0.5))
        np.testing.assert_array_equal(back["rows"], body["rows"])

    def test_nothing_but_numbers_is_sent(self):
        for value in (np.array(["text"]), np.array([object()]), object()):
            with self.assertRaises(TypeError):
                wire.pack("STEP", 0, 0, {"x": value})

    def test_what_is_no_message_is_malformed(self):
        good = wire.pack("STEP", 0, 0, {})
        other = [wire.MAGIC, b"\x85\xa1v\x92\x02\x00\xa1t\xa1x\xa1s\x00\xa1q\x00\xa1b\x80"]
        for frames in ([], good[:1], [b"TRB2", good[1]], [wire.MAGIC, b""], [wire.MAGIC, b"\x01"], good + [b""], other):
            with self.assertRaises(wire.Malformed):
                wire.unpack(frames)


class RobosuiteLiftTest(unittest.TestCase):
    @staticmethod
    def action(away, width, speed=0.0):
        """Of a hand whose cube is `away` from it, with `width` metres between fingers that close at `speed`."""
        hand = np.zeros(50)
        hand[-4:] = width / 2, -width / 2, speed, -speed
        return robosuite_lift.expert({"object-state": np.r_[np.zeros(7), away], "robot0_proprio-state": hand})

    def test_the_hand_goes_over_the_cube_then_down_with_open_fingers(self):
        np.testing.assert_allclose(self.action((0.05, -0.2, -0.08), 0.08), (0.5, -1, 0, 0, 0, 0, -1))
        np.testing.assert_allclose(self.action((0.01, 0, -0.05), 0.08), (0.1, 0, -0.5, 0, 0, 0, -1))

    def test_fingers_close_on_the_cube_and_rise_once_they_are_still(self):
        self.assertEqual(list(self.action((0, 0, -0.01), 0.08)[[2, 6]]), [-0.1, 1])
        self.assertEqual(list(self.action((0, 0, -0.01), 0.05, speed=-0.1)[[2, 6]]), [-0.1, 1])
        self.assertEqual(list(self.action((0, 0, -0.01), 0.05)[[2, 6]]), [0.5, 1])


class FieldsTest(unittest.TestCase):
    def test_names_are_flat_and_sorted_and_pictures_are_bytes_of_height_width_channels(self):
        kind = Kind("python:toy_envs:Everything", "{}")
        self.assertEqual([(f.name, f.dtype.name, f.shape) for f in kind.fields],
                         [("arm.joints", "float32", (4,)), ("bytes", "float32", (5,)), ("mode", "float32", (3,)),
                          ("rgb.camera", "uint8", (4, 6, 3)), ("rgb.channels_first", "uint8", (32, 20, 3))])

    def test_a_mask_of_the_choices_is_read_as_one_and_obeyed_from_the_first_step(self):
        described = Kind("python:toy_envs:Masked", "{}").description()["observation"]
        self.assertEqual([(field["name"], field.get("reader")) for field in described],
                         [("action_mask", "action_mask"), ("observation", None)])
        mask = fields_of(Dict({"action_mask": Box(0, 1, (3,)), "other": Box(0, 1, (3,))}))
        self.assertEqual([field.is_action_mask(3) for field in mask], [True, False])
        self.assertEqual([field.is_action_mask(0) for field in mask], [False, False], "of continuous actions")
        self.assertEqual([field.is_action_mask(4) for field in mask], [False, False])

    def test_a_part_that_stands_alone_is_the_state(self):
        for space in (Box(-1, 1, (3,)), Dict({"observation": Box(-1, 1, (3,))})):
            self.assertEqual([f.name for f in fields_of(space)], ["state"])
        self.assertEqual([f.name for f in fields_of(Box(0, 255, (84, 84), np.uint8))], ["rgb.observation"])

    def test_what_no_policy_can_read_is_refused_in_words(self):
        class Text:
            shape = None

        for space in (Text(), Dict({"told": Text()})):
            with self.assertRaisesRegex(Said, "is a Text"):
                fields_of(space)
        with self.assertRaisesRegex(Said, "one name"):
            fields_of(Dict({"a.b": Box(0, 1, (1,)), "a": Dict({"b": Box(0, 1, (1,))})}))
        for empty in (lambda: fields_of(Box(0, 1, (0,))), lambda: Actions(Box(0, 1, (0,)))):
            with self.assertRaisesRegex(Said, r"of shape \(0,\), without a number"):
                empty()
        with self.assertRaisesRegex(Said, "action"):
            Actions(Box(0, 3, (2,), np.int64))

    def test_actions_are_as_the_environment_has_them(self):
        box = Actions(Box(-2, 2, (2, 2), np.float64))
        self.assertEqual((box.size, box.low), (4, [-2] * 4))
        taken = box.to_env(np.array([[1, 2, 3, 4]], np.float32))[0]
        self.assertEqual((taken.shape, taken.dtype), ((2, 2), np.float64))
        self.assertEqual(Actions(Discrete(3, start=5)).to_env(np.array([[2]], np.float32)), [7])


class RowsTest(unittest.TestCase):
    def test_rows_are_stepped_alone_and_by_their_seeds(self):
        rows = Rows(Kind("python:toy_envs:Line", "{}"), 3)
        seeds = np.array([1, (1 << 63) + 1, 2], np.uint64)  # the low 31 bits of a seed count
        begun = rows.reset(np.arange(3), seeds)
        state = begun["obs"]["state"]
        self.assertEqual(begun["errors"], [])
        np.testing.assert_array_equal(state[0], state[1])
        self.assertNotEqual(state[0][0], state[2][0])
        stepped = rows.step(np.array([2, 0]), np.array([[1], [-1]], np.float32))
        self.assertAlmostEqual(stepped["obs"]["state"][0][0], state[2][0] + 0.2, places=6)
        self.assertAlmostEqual(stepped["reward"][1], -abs(stepped["obs"]["state"][1][0]), places=6)
        self.assertEqual(rows.kind.info, ["distance"])

    def test_what_a_row_raises_costs_it_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            once = os.path.join(folder, "once")
            open(once, "w").close()
            rows = Rows(Kind("python:toy_envs:Line", json.dumps({"fault": "raise", "at": "2", "once": once})), 2)
            rows.reset(np.arange(2), np.array([1, 2], np.uint64))
            action = np.zeros((2, 1), np.float32)
            self.assertEqual(rows.step(np.arange(2), action)["errors"], [])
            errors = rows.step(np.arange(2), action)["errors"]
            self.assertEqual(len(errors), 1)
            self.assertEqual(errors[0][0], 0)
            self.assertRegex(errors[0][1], r"ValueError: the line broke \(.*toy_envs.py:\d+\)")
            self.assertRegex(rows.step(np.arange(2), action)["errors"][0][1], "a step before the reset")
            self.assertEqual(rows.reset(np.array([0]), np.array([3], np.uint64))["errors"], [])
            self.assertEqual(rows.step(np.arange(2), action)["errors"], [])

    def test_agents_of_a_parallel_environment_act_together_and_leave_alone(self):
        kind = Kind("pettingzoo:toy_team", '{"walkers": "2"}')
        described = kind.description()
        self.assertEqual((described["agents"], described["max_steps"], described["info"]), (2, 12, ["late"]))
        self.assertEqual(described["observation"][0]["shape"], [2])
        rows = Rows(kind, 1)
        begun = rows.reset(np.arange(1), np.array([5], np.uint64))
        state = begun["obs"]["state"]
        self.assertEqual((state.shape, begun["alive"].tolist(), begun["errors"]), ((1, 2, 2), [[1, 1]], []))
        out = rows.step(np.arange(1), np.array([[[0.5], [-1]]], np.float32))
        np.testing.assert_allclose(out["obs"]["state"][0, :, 0], state[0, :, 0] + [0.5, -1], rtol=1e-6)
        np.testing.assert_allclose(out["reward"], out["obs"]["state"][:, :, 0], rtol=1e-6)
        out = rows.step(np.arange(1), np.array([[[1], [0]]], np.float32))
        self.assertEqual((out["alive"].tolist(), out["terminated"][0], out["truncated"][0]), ([[0, 1]], 0, 0))
        np.testing.assert_array_equal(out["obs"]["state"][0, 0], [0, 0])
        for _ in range(3, 13):
            self.assertEqual(out["truncated"][0], 0)
            out = rows.step(np.arange(1), np.array([[[1], [0]]], np.float32))
        self.assertEqual((out["terminated"][0], out["truncated"][0], out["reward"][0][0]), (0, 1, 0))
        self.assertNotEqual(out["obs"]["state"][0, 1, 0], 0)

    def test_an_end_at_which_the_last_agents_leave_is_the_tasks_own(self):
        rows = Rows(Kind("pettingzoo:toy_team", '{"walkers": "2"}'), 1)
        rows.reset(np.arange(1), np.array([5], np.uint64))
        out = rows.step(np.arange(1), np.full((1, 2, 1), 3, np.float32))
        self.assertEqual((out["terminated"][0], out["truncated"][0], out["alive"].tolist()), (1, 0, [[1, 1]]))

    def test_agents_that_stay_listed_when_all_have_ended_are_an_end(self):
        rows = Rows(Kind("pettingzoo:toy_team", '{"walkers": "2", "keeps": "true"}'), 1)
        rows.reset(np.arange(1), np.array([5], np.uint64))
        out = rows.step(np.arange(1), np.full((1, 2, 1), 3, np.float32))
        self.assertEqual((out["terminated"][0], out["truncated"][0]), (1, 0))

    def test_one_agent_of_a_parallel_environment_is_an_environment_as_others_are(self):
        kind = Kind("pettingzoo:toy_team", '{"walkers": "1"}')
        self.assertNotIn("agents", kind.description())
        rows = Rows(kind, 2)
        begun = rows.reset(np.arange(2), np.array([5, 6], np.uint64))
        self.assertEqual((begun["obs"]["state"].shape, "alive" in begun), ((2, 2), False))
        self.assertEqual(rows.step(np.arange(2), np.zeros((2, 1), np.float32))["reward"].shape, (2,))

    def test_parallel_environments_that_cannot_be_taken_are_refused_in_words(self):
        for env_id, options, why in (("pettingzoo:toy_team", '{"wide": "true"}', "'walker_0' and 'walker_2' observe or"),
                                     ("pettingzoo:toy_envs", "{}", "the module has no parallel_env"),
                                     ("pettingzoo:troupe_env.nothing", "{}", "has no module 'troupe_env.nothing'"),
                                     ("pettingzoo:no_such_zoo.v1", "{}", "-m pip install no_such_zoo")):
            with self.assertRaisesRegex(Said, why):
                Kind(env_id, options)

    def wild(self, **options):
        rows = Rows(Kind("python:toy_envs:Wild", json.dumps(options)), 2)
        rows.reset(np.arange(2), np.zeros(2, np.uint64))
        action = np.zeros((2, 1), np.float32)
        self.assertEqual(rows.step(np.arange(2), action)["errors"], [])
        return rows, rows.step(np.arange(2), action)

    def test_an_exit_a_choice_out_of_range_and_an_endless_text_cost_the_row(self):
        for how, why in (("exit", "SystemExit: 3"), ("choice", "'mode' is 3; its space has .3. choices from .0. on"),
                         ("text", r"ValueError: .é+ \(.*toy_envs.py:\d+\)$")):
            errors = self.wild(how=how)[1]["errors"]
            self.assertEqual([row for row, _ in errors], [0, 1])
            self.assertRegex(errors[0][1], why)
            self.assertLessEqual(len(errors[0][1].encode()), 2048)

    def test_numbers_that_info_lacks_are_nan_and_success_that_nobody_tells_is_said_once(self):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            rows, out = self.wild(how="info", success="solved")
            self.assertTrue(np.isnan(out["info"]).all())
            for _ in range(2):
                rows.reset(np.arange(2), np.zeros(2, np.uint64))
        self.assertEqual(said.getvalue().count("no 'solved'"), 1)

    def test_a_lease_that_cannot_be_made_closes_what_it_had_made(self):
        toy_envs.Wild.made = toy_envs.Wild.closed = 0
        with self.assertRaises(SystemExit):
            Rows(Kind("python:toy_envs:Wild", '{"most": 2}'), 3)
        self.assertEqual(toy_envs.Wild.closed, 2)

    def test_ends_and_everything_else_are_told(self):
        rows = Rows(Kind("python:toy_envs:Everything", '{"colour": "9"}'), 1)
        rows.reset(np.arange(1), np.array([5], np.uint64))
        for step in range(1, 4):
            out = rows.step(np.arange(1), np.array([[3]], np.float32))
        self.assertEqual((out["truncated"][0], out["terminated"][0], out["reward"][0], out["info"].tolist()),
                         (1, 0, 2.0, [[1.0]]))
        np.testing.assert_array_equal(out["obs"]["mode"], [[1, 0, 0]])
        self.assertEqual(out["obs"]["rgb.channels_first"][0, 0, 0].tolist(), [0, 0, 9])
        self.assertEqual(rows.render(0, 5, 3).shape, (3, 5, 3))

    def test_options_are_arguments_or_troupes_own(self):
        self.assertEqual(read_options('{"a": "1.5", "b": "word", "c": "[1]", "obs_dtype": "f64"}'),
                         ({"a": 1.5, "b": "word", "c": [1]}, {"obs_dtype": "f64"}))
        with self.assertRaisesRegex(Said, "wanted f32 or f64"):
            read_options('{"obs_dtype": "f16"}')


def offered(rows, change=lambda arrays: None):
    """Arrays as a simulator lays them out for `rows`, and the bytes that they want."""
    arrays, end = [], 64
    for name, dtype, shape in (("rows", "<i4", []), ("seeds", "<u8", []), ("actions", "<f4", [1]), ("reward", "<f8", []),
                               ("terminated", "|u1", []), ("truncated", "|u1", []), ("success", "|u1", []),
                               ("info", "<f8", [1]), ("obs.state", "<f4", [2])):
        shape = [rows, *shape]
        arrays.append([name, dtype, shape, end])
        end += -(-int(np.prod(shape)) * np.dtype(dtype).itemsize // 64) * 64
    change(arrays)
    return end, arrays


class SharedTest(unittest.TestCase):
    def test_rows_in_memory_do_what_rows_in_messages_do(self):
        apart, shared = (Rows(Kind("python:toy_envs:Line", "{}"), 3) for _ in range(2))
        size, arrays = offered(3)
        fd = shared.share(size, 77, arrays)
        with open(f"/proc/self/fd/{fd}", "r+b") as file, mmap.mmap(file.fileno(), size) as memory:
            self.assertEqual(int.from_bytes(memory[:8], "little"), 77)
            view = {name: np.ndarray(shape, dtype, memory, at) for name, dtype, shape, at in arrays}
            rows, seeds = np.array([2, 0], np.int32), np.array([8, 9], np.uint64)
            view["rows"][:2], view["seeds"][:2] = rows, seeds
            begun = apart.reset(rows, seeds)
            self.assertEqual(shared.reset(*shared.asked({"count": 2}, "seeds")), {"count": 2, "errors": []})
            np.testing.assert_array_equal(view["obs.state"][:2], begun["obs"]["state"])
            for action in ([[0.5], [-0.5]], [[0.1], [0.2]]):
                view["actions"][:2] = action
                stepped = apart.step(rows, np.array(action, np.float32))
                shared.step(*shared.asked({"count": 2}, "actions"))
                np.testing.assert_array_equal(view["obs.state"][:2], stepped["obs"]["state"])
                for name in ("reward", "terminated", "truncated", "success", "info"):
                    np.testing.assert_array_equal(view[name][:2], stepped[name])
            view["rows"][:1] = 1  # never begun
            lost = shared.step(*shared.asked({"count": 1}, "actions"))
            self.assertEqual([row for row, _ in lost["errors"]], [1])
            self.assertFalse(view["obs.state"][0].any() or view["reward"][0])
            for count in (-1, 4):
                with self.assertRaisesRegex(ValueError, "of 3"):
                    shared.asked({"count": count}, "actions")
            self.assertIn("reward", shared.step(*shared.asked({"rows": rows, "actions": np.zeros((2, 1), "f4")}, "actions")),
                          "a simulator that could not map it asks in messages")
            del view
        apart.close()
        shared.close()
        with self.assertRaises(OSError):
            os.fstat(fd)

    def test_arrays_that_are_not_its_own_or_leave_the_memory_are_refused(self):
        def at(index, place, value):
            return lambda arrays: arrays[index].__setitem__(place, value)

        rows = Rows(Kind("python:toy_envs:Line", "{}"), 3)
        before = os.listdir("/proc/self/fd")
        for change, why in ((at(8, 3, 1 << 40), "obs.state at byte"), (at(0, 3, -64), "rows at byte"),
                            (at(0, 3, 0), "in one place"), (at(1, 3, 64), "in one place"), (at(3, 3, 257), "reward at"),
                            (at(2, 2, [3, 2]), r"an array actions <f4 \[3, 2\]"), (at(8, 1, "<f8"), "an array obs.state"),
                            (at(8, 0, "obs.other"), "an array obs.other"), (lambda arrays: arrays.pop(), "no array obs"),
                            (lambda arrays: arrays.append(arrays[0]), "an array rows")):
            with self.assertRaisesRegex(LayoutError, why):
                rows.share(offered(3)[0], 1, offered(3, change)[1])
        self.assertEqual(os.listdir("/proc/self/fd"), before)
        self.assertIn("obs", rows.reset(np.arange(1), np.zeros(1, np.uint64)))  # messages still carry them


class ExpertTest(unittest.TestCase):
    def test_it_reads_what_the_environment_gave_and_gives_what_troupe_takes(self):
        rows = Rows(Kind("python:toy_envs:Line", "{}"), 1)
        seen = rows.reset(np.arange(1), np.zeros(1, np.uint64))["obs"]["state"][0]
        advice = rows.expert(0)
        self.assertEqual((advice.dtype, advice.shape, advice[0]), (np.float32, (1,), np.float32(-5 * seen[0])))
        seen = rows.step(np.arange(1), np.ones((1, 1), np.float32))["obs"]["state"][0]
        self.assertEqual(rows.expert(0)[0], np.float32(-5 * seen[0]))
        self.assertIsNone(Rows(Kind("python:toy_envs:Wild", "{}"), 1).expert(0))
        self.assertEqual(Actions(Discrete(3, start=5)).from_env(7).tolist(), [2])


class DirectTest(unittest.TestCase):
    def test_messages_have_their_size_before_them_and_an_end_is_told(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind("")  # the kernel chooses
            listener.listen()
            name = "@" + listener.getsockname()[1:].decode()
            direct = Direct(name)
            simulator, _ = listener.accept()
        message = ("STEP", 3, 4, {"count": 2, "text": "x" * 300_000})
        content = wire.pack_content(*message)
        sending = threading.Thread(target=simulator.sendall, args=(struct.pack("<I", len(content)) + content,))
        sending.start()
        self.assertEqual(direct.receive(), message)
        sending.join()
        direct.send("RESULT", 3, 4, {"errors": []})
        answer = simulator.recv(1 << 16)
        self.assertEqual(struct.unpack("<I", answer[:4])[0], len(answer) - 4)
        self.assertEqual(wire.unpack_content(answer[4:]), ("RESULT", 3, 4, {"errors": []}))
        simulator.sendall(b"\3\0\0\0abc\3\0")
        with self.assertRaises(wire.Malformed):
            direct.receive()
        simulator.close()
        with self.assertRaises(EOFError):
            direct.receive()
        direct.close()
        with self.assertRaises(OSError):
            Direct(name)


class BeatsTest(unittest.TestCase):
    def test_a_call_that_holds_the_interpreter_is_no_silence_of_the_hub(self):
        with mock.patch.multiple(worker, BEAT_SECONDS=0.05, HUB_SILENCE_SECONDS=0.5):
            context = zmq.Context()
            hub = context.socket(zmq.ROUTER)
            hub.setsockopt(zmq.LINGER, 0)
            endpoint = f"tcp://127.0.0.1:{hub.bind_to_random_port('tcp://127.0.0.1')}"
            beats = worker.Beats(context, endpoint)
            beats.begin(1)

            def serve(count):
                for _ in range(count):
                    self.assertTrue(hub.poll(20_000))
                    hub.send_multipart(hub.recv_multipart())

            serve(1)
            answering = threading.Thread(target=serve, args=(3,))
            answering.start()
            ctypes.PyDLL(None).usleep(900_000)
            self.assertFalse(beats.hub_is_silent())
            answering.join()
            end = time.monotonic() + 20
            while not beats.hub_is_silent() and time.monotonic() < end:
                if hub.poll(50):
                    hub.recv_multipart()
            self.assertTrue(beats.hub_is_silent())
            beats.stop()
            hub.close()
            context.term()


class ProgramTest(unittest.TestCase):
    def run_program(self, *words, path=(ROOT / "python", ROOT / "tests/python", ROOT / ".deps/clients"),
                    started=("-m", "troupe_env"), cwd=None, **variables):
        env = dict(os.environ, PYTHONPATH=":".join(str(one) for one in path), **variables)
        return subprocess.run([sys.executable, "-B", *started, *words], env=env, capture_output=True, text=True,
                              timeout=60, cwd=cwd)

    def test_modules_of_the_working_folder_come_last_and_for_a_class_of_ones_own_alone(self):
        folders = (("-m", "troupe_env"), (str(ROOT / "python/troupe_env"),))
        with tempfile.TemporaryDirectory() as folder:
            for name in ("argparse", "msgpack", "numpy", "zmq", "toy_envs", "gymnasium"):
                pathlib.Path(folder, name + ".py").write_text("raise RuntimeError('of the working folder')\n")
            pathlib.Path(folder, "mine.py").write_text("from toy_envs import Line\n")
            for started in folders:
                done = self.run_program("--describe", "python:mine:Line", started=started, cwd=folder)
                self.assertEqual(done.returncode, 0, done.stderr)
                done = self.run_program("--describe", "gymnasium:mine:Nothing-v0", started=started, cwd=folder)
                self.assertRegex(done.stderr, "needs the Python package (gymnasium|mine)")

    def test_an_orphan_says_why_it_ends(self):
        gone = subprocess.Popen([sys.executable, "-c", ""])
        gone.wait()
        done = self.run_program("--describe", "python:toy_envs:Line", TROUPE_PARENT_PID=str(gone.pid))
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, f"the process {gone.pid} that started this worker is not there")

    def test_a_started_worker_that_finds_no_simulator_says_so_and_ends(self):
        with mock.patch.multiple(worker, HUB_ABSENCE_SECONDS=0.2), tempfile.TemporaryDirectory() as folder:
            kind = Kind("python:toy_envs:Line", "{}")
            lonely = worker.Worker(kind, f"ipc://{folder}/nobody", "w0", "{}", "{}", "simulator")
            with self.assertRaisesRegex(Said, "there was no simulator at ipc:"):
                lonely.run()

    def test_a_description_is_the_only_output(self):
        done = self.run_program("--describe", "python:toy_envs:Line")
        self.assertEqual(done.returncode, 0, done.stderr)
        spec = json.loads(done.stdout)
        self.assertEqual((spec["id"], spec["max_steps"], spec["control_hz"], spec["has_success"], spec["info"]),
                         ("python:toy_envs:Line", 20, 10.0, True, ["distance"]))

    def test_what_is_missing_is_one_sentence_with_its_command(self):
        for words, sentence in (
                (("gymnasium:no_such_module:Nothing-v3",), r"gymnasium:no_such_module:Nothing-v3 needs the Python package "
                 r"(\w+); install it with: \S+ -m pip install \1 "
                 r"\(env.bridge.python, or the variable TROUPE_PYTHON, names another Python\)\n"),
                (("python:no_such_module:Line",), "there is no module 'no_such_module' on Python's path; put the folder "
                 "that holds it into env.bridge.path\n"),
                (("python:toy_envs:Lime",), "has no 'Lime'\n"),
                (("python:toy_envs:NoEnvironment",), "is no class with reset and step\n"),
                (("python:toy_envs:OldForm",), "step returns 4 values; wanted .observation, reward, terminated"),
                (("chess:e4",), "'chess:e4' is no environment in Python; wanted gymnasium:NAME"),
                (("python:toy_envs:Line", "--options", '{"speed": "1"}'), "speed")):
            done = self.run_program("--describe", *words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertRegex(done.stderr.splitlines(True)[-1], sentence)
        done = self.run_program("--describe", "python:toy_envs:Line", path=(ROOT / "python",))
        if done.returncode:  # this Python may have them itself
            self.assertRegex(done.stderr, "needs the Python package .*; install it with: .*numpy msgpack pyzmq")


if __name__ == "__main__":
    unittest.main()
