"""What scripts/track.py reads, sends once and refuses; a list stands for the tracker. tests/scripts/trackers.py runs it with real ones."""
import contextlib
import fcntl
import importlib.util
import io
import json
import math
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import unittest

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "track.py"
spec = importlib.util.spec_from_file_location("track", PROGRAM)
track = importlib.util.module_from_spec(spec)
sys.dont_write_bytecode = True
spec.loader.exec_module(track)


def line(step, **values):
    return json.dumps({"step": step, "wall": 100.0 + step, "samples": 8 * step, "m": values}) + "\n"


class Sent:
    """A tracker that remembers; `then` is called after each batch."""

    def __init__(self, then=lambda: None):
        self.records, self.first_lines, self.pictures, self.then = [], [], [], then

    def send(self, records, first_line):
        self.records += records
        self.first_lines.append(first_line)
        self.then()

    def send_picture(self, path, name, state):
        self.pictures.append(name)

    def steps(self):
        return [record[0] for record in self.records]


class TrackTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve() / "runs" / "arm" / "20260102-030405-abcd"
        self.root.mkdir(parents=True)
        (self.root / "config.resolved.yaml").write_text("version: 1\n")
        self.run_root = str(self.root.parents[1])
        self.run_dir = track.Run(str(self.root), self.run_root)

    def write(self, text):
        with open(self.root / "metrics.jsonl", "a") as file:
            file.write(text)

    def state(self):
        state = track.State(self.run_dir, "wandb")
        self.addCleanup(state.lock.close)
        return state

    def hold_lock(self):
        file = open(self.root / "lock", "w")
        fcntl.flock(file, fcntl.LOCK_EX)
        self.addCleanup(file.close)
        return file

    def test_a_job_name_is_its_newest_run(self):
        older = self.root.parent / "20260101-000000-ffff"
        older.mkdir()
        (older / "config.resolved.yaml").write_text("")
        self.assertEqual(track.Run("arm", self.run_root).root, self.root)
        self.assertEqual(track.Run(str(self.root.parent), "elsewhere").root, self.root)
        self.assertEqual(track.Run(f"arm/{older.name}", self.run_root).root, older)
        latest = self.root.parents[1] / "latest"
        latest.symlink_to(older)
        self.assertEqual(track.Run(str(latest), self.run_root).root, older)
        with self.assertRaisesRegex(track.Failure, "leg is no run") as refused:
            track.Run("leg", self.run_root)
        self.assertEqual(refused.exception.code, 2)

    def test_a_line_that_is_not_whole_yet_waits_for_its_end(self):
        whole = line(1, **{"train/loss": 0.5})
        torn = line(2, **{"train/loss": 0.25})
        self.write(whole + torn[:30])
        records, end = self.run_dir.next_records(0)
        self.assertEqual(records, [(1, 101.0, 8, {"train/loss": 0.5})])
        self.assertEqual(end, len(whole))
        self.assertEqual(self.run_dir.next_records(end), ([], end))
        self.write(torn[30:])
        records, end = self.run_dir.next_records(end)
        self.assertEqual([record[0] for record in records], [2])
        self.assertEqual(end, len(whole + torn))

    def test_numbers_that_are_not_finite_keep_their_values(self):
        self.write(line(1, a="NaN", b="Infinity", c="-Infinity"))
        values = self.run_dir.next_records(0)[0][0][3]
        self.assertTrue(math.isnan(values["a"]))
        self.assertEqual((values["b"], values["c"]), (math.inf, -math.inf))

    def test_a_damaged_line_is_named_and_left_out(self):
        self.write(line(1, a=1) + "{\"step\":\n" + line(3, a=3))
        complaints = io.StringIO()
        with contextlib.redirect_stderr(complaints):
            records, _ = self.run_dir.next_records(0)
        self.assertEqual([record[0] for record in records], [1, 3])
        self.assertIn(f"metrics.jsonl: the line at byte {len(line(1, a=1))} is left out", complaints.getvalue())

    def test_a_file_that_was_replaced_is_refused(self):
        self.write(line(1, a=1))
        with self.assertRaisesRegex(track.Failure, "it was replaced; delete .*track-"):
            self.run_dir.next_records(10000)

    def test_a_run_is_live_while_its_lock_is_held(self):
        self.assertFalse(self.run_dir.is_live())
        lock = self.hold_lock()
        self.assertTrue(self.run_dir.is_live())
        lock.close()
        self.assertFalse(self.run_dir.is_live())

    def test_the_end_of_a_run_is_read_from_its_database(self):
        with self.assertRaisesRegex(track.Failure, "state.db"):
            self.run_dir.end_state()
        database = sqlite3.connect(self.root / "state.db")  # stays open: its last lines are in state.db-wal
        self.addCleanup(database.close)
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE job (id INTEGER, term INTEGER, state TEXT, step INTEGER)")
        database.execute("INSERT INTO job VALUES (0, 1, 'RUNNING', 7)")
        database.commit()
        self.assertEqual(self.run_dir.end_state(), "KILLED")
        for state in ("DONE", "FAILED", "STOPPED"):
            database.execute("UPDATE job SET state = ?", (state,))
            database.commit()
            self.assertEqual(self.run_dir.end_state(), state)

    def test_each_line_is_sent_once_whatever_ends_the_program(self):
        for step in range(1, 4):
            self.write(line(step, a=step))
        first = Sent()
        state = self.state()
        self.assertTrue(track.follow(self.run_dir, first, state, 60, threading.Event()))
        self.assertEqual(first.steps(), [1, 2, 3])
        state.lock.close()
        self.write(line(4, a=4))
        second = Sent()
        self.assertTrue(track.follow(self.run_dir, second, self.state(), 60, threading.Event()))
        self.assertEqual((second.steps(), second.first_lines), ([4], [3]))

    def test_what_a_run_writes_before_its_end_is_sent(self):
        self.write(line(1, a=1))
        looks = iter([True, False])

        def is_live():
            live = next(looks)
            if not live:
                self.write(line(2, a=2))  # between the last look at the metrics and this one at the lock
            return live

        self.run_dir.is_live = is_live
        sent = Sent()
        self.assertTrue(track.follow(self.run_dir, sent, self.state(), 0.01, threading.Event()))
        self.assertEqual(sent.steps(), [1, 2])

    def test_a_signal_ends_the_wait_for_a_live_run(self):
        self.hold_lock()
        self.write(line(1, a=1))
        stop = threading.Event()
        sent = Sent(stop.set)
        state = self.state()
        self.assertFalse(track.follow(self.run_dir, sent, state, 3600, stop))
        self.assertEqual((sent.steps(), state["step"]), ([1], 1))

    def test_two_programs_for_one_run_and_tracker_are_refused(self):
        self.state()
        with self.assertRaisesRegex(track.Failure, "another scripts/track.py sends"):
            self.state()

    def test_a_damaged_state_file_is_named(self):
        (self.root / "track-wandb.json").write_text("{")
        with self.assertRaisesRegex(track.Failure, "track-wandb.json is damaged"):
            self.state()

    def test_a_picture_is_sent_again_only_when_it_has_changed(self):
        picture = self.root / "eval" / "step_000010" / "prediction.png"
        picture.parent.mkdir(parents=True)
        picture.write_bytes(b"1")
        (self.root / "loss.png").write_bytes(b"1")
        state, sent = self.state(), Sent()
        track.send_pictures(self.run_dir, sent, state)
        self.assertEqual(sent.pictures, ["loss.png", "eval/step_000010/prediction.png"])
        track.send_pictures(self.run_dir, sent, state)
        self.assertEqual(len(sent.pictures), 2)
        os.utime(self.root / "loss.png", ns=(1, 1))
        track.send_pictures(self.run_dir, sent, state)
        self.assertEqual(sent.pictures[2:], ["loss.png"])

    def test_nested_keys_become_dotted_names(self):
        config = {"job": {"name": "arm", "seed": 3}, "sinks": ["jsonl"], "placement": {"env,rollout": "0"}, "none": {}}
        self.assertEqual(dict(track.flattened(config)), {"job.name": "arm", "job.seed": "3", "sinks": '["jsonl"]',
                                                         "placement": '{"env,rollout": "0"}', "none": "{}"})

    def test_a_missing_package_is_told_with_the_line_that_installs_it(self):
        for tracker, words in (("wandb", "wandb pillow"), ("mlflow", "mlflow")):
            done = subprocess.run([sys.executable, "-I", "-S", PROGRAM, self.root, "--to", tracker, "--pictures"], capture_output=True, text=True,
                                  timeout=60, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"-m pip install {words}\n", done.stderr)

    def test_wrong_arguments_are_told(self):
        for words, told in ((["nowhere", "--to", "wandb"], "nowhere is no run"), ([self.root, "--to", "comet"], "'wandb'"),
                            ([self.root, "--to", "wandb", "--every", "0"], "--every 0")):
            done = subprocess.run([sys.executable, PROGRAM, *words], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(told, done.stderr)


if __name__ == "__main__":
    signal.alarm(120)
    unittest.main()
