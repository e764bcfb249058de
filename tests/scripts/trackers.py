"""scripts/track.py with the packages that users have: trackers.py wandb|mlflow TROUPE.

Unpacks pinned wheels (tests/scripts/wandb-wheels.txt, mlflow-wheels.txt) into a throw-away folder, follows a short job of the program TROUPE, is stopped and goes on, and reads
back what the tracker has stored: without network, account or server. Exits 0 when each number is there once.
"""
import collections
import json
import math
import os
import pathlib
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATIENCE = 300.0  # seconds for what the job or the program should do soon
LEVELDB_BLOCK = 32768  # of the log format of LevelDB, in which wandb writes a run


def install(tracker, folder):
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes", "--only-binary=:all:",
                    "--target", folder, "-r", pathlib.Path(__file__).with_name(f"{tracker}-wheels.txt")], check=True)


def wait_until(what, condition, *processes):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {PATIENCE:.0f} s"
        assert all(process.poll() is None for process in processes), f"{what}: the program ended before"
        time.sleep(0.02)


def lines_of(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def wanted_numbers(run):
    """How often each (step, metric, value) must be there. NaN is None, as it equals nothing."""
    return collections.Counter((line["step"], name, number(value)) for line in lines_of(run) for name, value in line["m"].items())


def number(value):
    return None if math.isnan(float(value)) else float(value)


def wandb_records(folder):
    """The records of all files that wandb wrote in this folder, oldest first."""
    from wandb.proto import wandb_internal_pb2
    for file in sorted(folder.glob("wandb/offline-run-*/run-*.wandb")):
        data = file.read_bytes()
        assert data[:4] == b":W&B", file
        at, whole = 7, b""
        while at + 7 <= len(data):
            left = LEVELDB_BLOCK - at % LEVELDB_BLOCK
            if left < 7:
                at += left
                continue
            _, size, kind = struct.unpack_from("<IHB", data, at)
            assert 1 <= kind <= 4, (file, at, kind)
            part = data[at + 7:at + 7 + size]
            at += 7 + size
            whole = part if kind in (1, 2) else whole + part
            if kind in (1, 4):
                yield wandb_internal_pb2.Record.FromString(whole)


def check_wandb(folder, run, steps):
    found, pictures, indices, config, codes, ids = collections.Counter(), set(), [], {}, [], set()
    for record in wandb_records(folder):
        if record.HasField("history"):
            row = {".".join(item.nested_key) or item.key: json.loads(item.value_json) for item in record.history.item}
            indices.append(row["_step"])
            names = [name for name in row if name.startswith("pictures/")]
            pictures.update(name.removesuffix("._type").removeprefix("pictures/") for name in names if name.endswith(".png._type"))
            pictures.update(name.removeprefix("pictures/") for name in names if isinstance(row[name], dict) and row[name]["_type"] == "image-file")
            if not names:
                found.update((row["step"], name, number(value)) for name, value in row.items() if "/" in name)
        elif record.HasField("run"):
            ids.add(record.run.run_id)
            config.update({item.key: json.loads(item.value_json) for item in record.run.config.update})
        elif record.HasField("exit"):
            codes.append(record.exit.exit_code)
    assert found == wanted_numbers(run), (found - wanted_numbers(run), wanted_numbers(run) - found)
    assert indices == sorted(set(indices)), "wandb drops rows whose index does not grow"
    assert len(ids) == 1, f"going on made another run: {ids}"
    assert config["job"]["kind"] == "rl" and config["training"]["steps"] == steps and isinstance(config["optimizer"]["lr"], float), config
    assert pictures == {"return.png"}, pictures
    assert codes == [0, 0, 0], codes


def check_mlflow(folder, run, steps):
    with sqlite3.connect(folder / "mlflow.db") as database:
        rows = database.execute("SELECT step, key, value, is_nan, timestamp FROM metrics").fetchall()
        runs = database.execute("SELECT name, status, artifact_uri FROM runs").fetchall()
        params = dict(database.execute("SELECT key, value FROM params"))
    found = collections.Counter((step, key, None if is_nan else value) for step, key, value, is_nan, _ in rows)
    assert found == wanted_numbers(run), (found - wanted_numbers(run), wanted_numbers(run) - found)
    assert {row[4] for row in rows} == {round(1000 * line["wall"]) for line in lines_of(run)}
    assert [row[:2] for row in runs] == [(f"quickstart-rl/{run.name}", "FINISHED")], runs
    assert params["job.kind"] == "rl" and params["training.steps"] == "1000000", "parameters stay those of the first start"
    files = pathlib.Path(runs[0][2].removeprefix("file://"))
    assert (files / "pictures" / "return.png").read_bytes() == (run / "return.png").read_bytes()
    assert (files / "config.resolved.yaml").read_bytes() == (run / "config.resolved.yaml").read_bytes()


def track(folder, run, tracker, *words):
    return subprocess.Popen([sys.executable, ROOT / "scripts" / "track.py", run, "--to", tracker, "--every", "0.1", *words], cwd=folder,
                            start_new_session=True)


def start_job(folder, troupe, steps, resume):
    return subprocess.Popen([troupe, "run", "quickstart:rl", "--resume", resume, f"training.steps={steps}", "metrics.every=1"], cwd=folder,
                            stdout=open(folder / "run.txt", "a"), stderr=subprocess.STDOUT, start_new_session=True)


def follow_a_job(folder, tracker, troupe):
    """A tracker is stopped, another goes on until the job is stopped, and a third sends what the job adds when it goes on. The run, and its last step."""
    job = start_job(folder, troupe, 1_000_000, "never")
    trackers = []
    try:
        wait_until("the job's first step", (folder / "runs" / "latest" / "metrics.jsonl").exists, job)
        run = (folder / "runs" / "latest").resolve()
        state = run / f"track-{tracker}.json"

        def sent():
            return json.loads(state.read_text())["step"] if state.exists() else 0

        trackers.append(track(folder, run, tracker))
        wait_until("a step at the tracker", lambda: sent() > 0, job, trackers[-1])
        os.killpg(trackers[-1].pid, signal.SIGINT)  # as Ctrl-C does: to what the tracker's package started, too
        assert trackers[-1].wait(PATIENCE) == 130
        before = sent()
        trackers.append(track(folder, run, tracker))
        wait_until("further steps at the tracker", lambda: sent() > before, job, trackers[-1])
        job.send_signal(signal.SIGINT)
        assert job.wait(PATIENCE) == 130, (folder / "run.txt").read_text()
        assert trackers[-1].wait(PATIENCE) == 0
        stopped = sent()
        assert stopped == lines_of(run)[-1]["step"] > before
        job = start_job(folder, troupe, stopped + 5, "auto")
        assert job.wait(PATIENCE) == 0, (folder / "run.txt").read_text()
        trackers.append(track(folder, run, tracker, "--pictures"))
        assert trackers[-1].wait(PATIENCE) == 0
        assert sent() == stopped + 5
        return run, sent()
    finally:
        for process in (job, *trackers):
            if process.poll() is None:
                process.kill()


def main():
    tracker, troupe = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name).resolve()
        install(tracker, folder / "packages")
        os.environ.update(PYTHONPATH=str(folder / "packages"), WANDB_MODE="offline", MLFLOW_TRACKING_URI=f"sqlite:///{folder}/mlflow.db")
        sys.path.insert(0, str(folder / "packages"))
        {"wandb": check_wandb, "mlflow": check_mlflow}[tracker](folder, *follow_a_job(folder, tracker, troupe))
    print("ok")


if __name__ == "__main__":
    main()
