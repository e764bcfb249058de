#!/usr/bin/env python3
"""Sends the numbers of a run to Weights & Biases or to MLflow, while it goes on or afterwards.

    scripts/track.py RUN --to wandb|mlflow [--project NAME] [--pictures] [--every SECONDS]

RUN is a run directory, a link to one (runs/latest), NAME/ID below --run-root, a job's name there, or the folder of that name (the newest run of both). Where a run stands at the tracker is kept in
RUN/track-wandb.json or RUN/track-mlflow.json, so that the same command goes on after it was stopped and after the run was resumed.
Exit status: 0 all is sent and the run has ended; 1 the tracker or the disk failed; 2 a wrong argument; 130 stopped by a signal.
"""
import argparse
import contextlib
import fcntl
import importlib
import json
import os
import pathlib
import re
import secrets
import shutil
import signal
import sqlite3
import sys
import tempfile
import threading
import time

READ_BYTES = 4 << 20  # of metrics.jsonl at a time
MLFLOW_BATCH = 1000  # metrics of one request, MLflow's limit
MLFLOW_PARAMS = 100  # parameters of one request, likewise
MLFLOW_TEXT = 6000  # characters of one parameter, likewise


class Failure(Exception):
    """Ends the program with this text; `code` is its exit status."""

    def __init__(self, text, code=1):
        super().__init__(text)
        self.code = code


class Run:
    """The files of a run directory that are read here (docs/run-directory.md)."""

    def __init__(self, name, run_root):
        named, below = pathlib.Path(name), pathlib.Path(run_root) / name
        found = [folder for folder in ([named, below] if "/" in name else [named]) if (folder / "config.resolved.yaml").is_file()]
        for folder in (below, named):
            found += [file.parent for file in sorted(folder.glob("*/config.resolved.yaml"))[-1:]]
        if found:
            self.root = found[0].resolve()
        else:
            raise Failure(f"{name} is no run: neither {named}/config.resolved.yaml nor {run_root}/{name}/ID/config.resolved.yaml is there; "
                          f"name a run directory, runs/latest or a job's name", code=2)
        self.metrics = self.root / "metrics.jsonl"

    def config(self):
        """The resolved configuration as nested dictionaries. Both trackers bring PyYAML."""
        import yaml
        with open(self.root / "config.resolved.yaml", encoding="utf-8") as file:
            return yaml.load(file, Loader=scalar_loader(yaml))

    def is_live(self):
        """Whether a controller has it: it holds RUN/lock until its process has ended."""
        try:
            file = open(self.root / "lock", "rb")
        except FileNotFoundError:
            return False
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def end_state(self):
        """The job's state in state.db: DONE, STOPPED or FAILED; what else stands there was killed. Reads a copy, so that the run may begin again."""
        with tempfile.TemporaryDirectory() as folder:
            for ending in ("", "-wal"):
                with contextlib.suppress(FileNotFoundError):
                    shutil.copy(self.root / f"state.db{ending}", f"{folder}/state.db{ending}")
            try:
                with contextlib.closing(sqlite3.connect(f"{folder}/state.db")) as database:
                    row = database.execute("SELECT state FROM job").fetchone()
            except sqlite3.Error as error:
                raise Failure(f"{self.root}/state.db: how the run ended cannot be read: {error}") from error
        return row[0] if row and row[0] in ("DONE", "STOPPED", "FAILED") else "KILLED"

    def pictures(self):
        return sorted(self.root.glob("*.png")) + sorted(self.root.glob("eval/**/*.png"))

    def next_records(self, offset):
        """The records of whole lines from byte `offset` on, and where the next one begins. A line whose end is not written yet is left for later."""
        try:
            with open(self.metrics, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size < offset:
                    raise Failure(f"{self.metrics} has {size} bytes and {offset} were sent: it was replaced; "
                                  f"delete {self.root}/track-*.json to send it anew, to a new run of the tracker")
                file.seek(offset)
                data = file.read(READ_BYTES)
        except FileNotFoundError:
            return [], offset
        end = data.rfind(b"\n") + 1
        if end == 0 and len(data) == READ_BYTES:
            raise Failure(f"{self.metrics}: the line at byte {offset} is longer than {READ_BYTES} bytes")
        records = []
        for line in data[:end].splitlines(keepends=True):
            try:
                record = json.loads(line)
                records.append((int(record["step"]), float(record["wall"]), int(record["samples"]),
                                {name: float(value) for name, value in record["m"].items()}))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                print(f"track: warning: {self.metrics}: the line at byte {offset} is left out: {error!r}", file=sys.stderr)
            offset += len(line)
        return records, offset


def scalar_loader(yaml):
    """YAML 1.2's plain scalars, as Troupe writes them; PyYAML would read 1e-05 as text and `off` as false."""

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers = {}

    for tag, pattern, first in (("null", r"~|null|", ["~", "n", ""]), ("bool", r"true|false", ["t", "f"]),
                                ("int", r"[-+]?[0-9]+", list("-+0123456789")),
                                ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan", list("-+.0123456789"))):
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(rf"^(?:{pattern})$"), first)
    # The base class reads 0777 as octal and takes 1e5 for text in an integer's place.
    Loader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(loader.construct_scalar(node)))
    return Loader


class State:
    """How much of a run is at the tracker, and under which name: RUN/track-TRACKER.json. Held by one process at a time."""

    def __init__(self, run, tracker):
        self.path = run.root / f"track-{tracker}.json"
        self.lock = open(run.root / f"track-{tracker}.lock", "w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.lock.close()
            raise Failure(f"another scripts/track.py sends {run.root} to {tracker} already", code=2) from None
        self.values = {"id": None, "bytes": 0, "lines": 0, "step": 0, "pictures": {}}
        try:
            self.values.update(json.loads(self.path.read_text()))
        except FileNotFoundError:
            pass
        except ValueError as error:
            self.lock.close()
            raise Failure(f"{self.path} is damaged: {error}; delete it to send everything anew, to a new run of the tracker") from error

    def __getitem__(self, name):
        return self.values[name]

    def save(self, **values):
        self.values.update(values)
        beside = self.path.with_suffix(".json.tmp")
        beside.write_text(json.dumps(self.values) + "\n")
        os.replace(beside, self.path)


class WandbRun:
    """One run of Weights & Biases. WANDB_MODE, WANDB_DIR and the other variables of wandb hold as everywhere."""

    MODULES = {"wandb": "wandb"}
    PICTURE_MODULES = {"PIL": "pillow"}
    FIRST_ADVICE = "Without an account: WANDB_MODE=offline keeps the run in ./wandb, and `wandb sync` sends it later."

    def __init__(self, run, state, project):
        import wandb
        self.wandb = wandb
        config = run.config()
        self.run = wandb.init(project=project, id=state["id"] or secrets.token_hex(4), resume="allow", name=f"{config['job']['name']}/{run.root.name}",
                              group=config["job"]["name"], job_type=config["job"]["kind"], config=config, allow_val_change=True,
                              settings=wandb.Settings(console="off", disable_git=True, disable_code=True, x_disable_stats=True))
        # wandb drops what comes for an earlier step than the last; a run that went back to a checkpoint trains steps again.
        self.run.define_metric("step", hidden=True)
        self.run.define_metric("*", step_metric="step")
        self.id, self.where = self.run.id, self.run.url or self.run.dir

    def send(self, records, first_line):
        for line, (step, wall, samples, values) in enumerate(records, first_line):
            self.run.log({"step": step, "samples": samples, "_timestamp": wall, **values}, step=line)

    def send_picture(self, path, name, state):
        self.run.log({f"pictures/{name}": self.wandb.Image(str(path)), "step": state["step"]}, step=state["lines"])

    def finish(self, end_state):
        self.run.finish(exit_code=1 if end_state in ("FAILED", "KILLED") else 0)

    def leave(self):
        self.run.finish(exit_code=0)


class MlflowRun:
    """One run of MLflow, at MLFLOW_TRACKING_URI or where MLflow itself keeps runs without it."""

    MODULES = {"mlflow": "mlflow"}
    PICTURE_MODULES = {}
    FIRST_ADVICE = "Without a server: MLFLOW_TRACKING_URI=sqlite:///mlflow.db keeps runs in a file."

    def __init__(self, run, state, project):
        import mlflow
        from mlflow import entities
        self.metric = entities.Metric
        self.client = mlflow.MlflowClient()
        config = run.config()
        if state["id"] is None:
            experiment = self.client.get_experiment_by_name(project)
            number = experiment.experiment_id if experiment else self.client.create_experiment(project)
            made = self.client.create_run(number, run_name=f"{config['job']['name']}/{run.root.name}", tags={"troupe.kind": config["job"]["kind"]})
            self.id = made.info.run_id
            flat = [entities.Param(name, text[:MLFLOW_TEXT]) for name, text in flattened(config)]
            for begin in range(0, len(flat), MLFLOW_PARAMS):
                self.client.log_batch(self.id, params=flat[begin:begin + MLFLOW_PARAMS])
        else:
            self.id = state["id"]
            self.client.update_run(self.id, status="RUNNING")
        self.client.log_artifact(self.id, str(run.root / "config.resolved.yaml"))
        self.where = mlflow.get_tracking_uri()

    def send(self, records, first_line):
        metrics = [self.metric(name, value, round(1000 * wall), step) for step, wall, _, values in records for name, value in values.items()]
        for begin in range(0, len(metrics), MLFLOW_BATCH):
            self.client.log_batch(self.id, metrics=metrics[begin:begin + MLFLOW_BATCH])

    def send_picture(self, path, name, state):
        self.client.log_artifact(self.id, str(path), str(pathlib.PurePath("pictures", name).parent))

    def finish(self, end_state):
        self.client.set_terminated(self.id, {"DONE": "FINISHED", "FAILED": "FAILED"}.get(end_state, "KILLED"))

    def leave(self):
        """Stays open: the same command goes on with it."""


def flattened(value, name=""):
    """("a.b", text) for each key of nested dictionaries; lists, and names that MLflow refuses, are JSON text of their parent."""
    if not isinstance(value, dict) or not value or not all(re.fullmatch(r"[\w-]+", str(key)) for key in value):
        yield name, value if isinstance(value, str) else json.dumps(value)
        return
    for key, item in value.items():
        yield from flattened(item, f"{name}.{key}" if name else str(key))


TRACKERS = {"wandb": WandbRun, "mlflow": MlflowRun}


@contextlib.contextmanager
def errors_of(tracker, state):
    """Errors of a tracker are its own classes; each becomes one line that says what to do."""
    try:
        yield
    except (Failure, OSError):
        raise
    except Exception as error:
        advice = f"The same command goes on behind step {state['step']}."
        if state["id"] is None:
            advice = TRACKERS[tracker].FIRST_ADVICE
        else:
            advice += f" Where {tracker} has no run {state['id']} any more, delete {state.path} to send everything anew, to a new one."
        raise Failure(f"{tracker}: {error}\n{advice}") from error


def need_modules(modules):
    missing = []
    for module, package in modules.items():
        try:
            importlib.import_module(module)
        except ImportError as error:
            if (error.name or "").split(".")[0] != module:
                raise Failure(f"{module} cannot be imported by {sys.executable}: {error}", code=2) from error
            missing.append(package)
    if missing:
        raise Failure(f"{sys.executable} has no {' and no '.join(missing)}; install it for this Python:\n"
                      f"  {sys.executable} -m pip install {' '.join(missing)}", code=2)


def follow(run, tracker, state, every, stop):
    """Sends line after line until the run has ended or `stop` is set. True: the run has ended, and all is sent."""
    told = time.monotonic()
    while True:
        live = run.is_live()  # before reading: what was written before the end is read then
        while not stop.is_set():
            records, end = run.next_records(state["bytes"])
            if end == state["bytes"]:
                break
            tracker.send(records, state["lines"])
            state.save(bytes=end, lines=state["lines"] + len(records), step=records[-1][0] if records else state["step"])
            if time.monotonic() > told + 60:
                told = time.monotonic()
                print(f"track: step {state['step']} is sent", flush=True)
        if stop.is_set():
            return False
        if not live:
            return True
        stop.wait(every)


def send_pictures(run, tracker, state):
    """Those that are new or have changed since they were sent."""
    for path in run.pictures():
        name, changed = str(path.relative_to(run.root)), path.stat().st_mtime_ns
        if state["pictures"].get(name) != changed:
            tracker.send_picture(path, name, state)
            state.save(lines=state["lines"] + 1, pictures={**state["pictures"], name: changed})


def track(options, stop):
    run = Run(options.run, options.run_root)
    kind = TRACKERS[options.to]
    need_modules({**kind.MODULES, **(kind.PICTURE_MODULES if options.pictures else {})})
    sinks = run.config().get("metrics", {}).get("sinks", [])
    if "jsonl" not in sinks:
        raise Failure(f"{run.root} writes no metrics.jsonl: metrics.sinks is {sinks}; it must hold jsonl", code=2)
    state = State(run, options.to)
    with errors_of(options.to, state):
        tracker = kind(run, state, options.project)
        state.save(id=tracker.id)
        print(f"track: {run.root} is {options.to}'s run {tracker.id} of {options.project}, {tracker.where}", flush=True)
        if not follow(run, tracker, state, options.every, stop):
            tracker.leave()
            print(f"track: stopped; step {state['step']} is sent, and the same command goes on behind it", flush=True)
            return 130
        if options.pictures:
            send_pictures(run, tracker, state)
        end_state = run.end_state()
        tracker.finish(end_state)
    print(f"track: {state['lines']} records up to step {state['step']} are sent; the run is {end_state}", flush=True)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", metavar="RUN", help="a run directory, runs/latest, or a job's name")
    parser.add_argument("--to", required=True, choices=sorted(TRACKERS))
    parser.add_argument("--project", default="troupe", help="wandb's project, MLflow's experiment (default: troupe)")
    parser.add_argument("--pictures", action="store_true", help="send the run's pictures too, at its end")
    parser.add_argument("--every", type=float, default=5, metavar="SECONDS", help="how often a running job is read (default: 5)")
    parser.add_argument("--run-root", default="runs", metavar="DIR", help="where a job's name is looked up (default: runs)")
    options = parser.parse_args()
    if not 0 < options.every < 86400:
        parser.error(f"--every {options.every:g}: a number of seconds above 0 and below 86400")
    stop = threading.Event()

    def on_signal(number, _):
        signal.signal(number, signal.SIG_DFL)  # a second one ends at once
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    try:
        return track(options, stop)
    except Failure as failure:
        print(f"track: {failure}", file=sys.stderr)
        return failure.code
    except OSError as error:
        print(f"track: {error.filename or options.run}: {error.strerror or error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
