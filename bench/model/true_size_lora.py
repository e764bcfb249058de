"""Trains a few steps, resumes one more, and says what memory, disk and time that took: bench/model/true_size_lora.sh."""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import threading

parser = argparse.ArgumentParser()
parser.add_argument("troupe")
parser.add_argument("job")
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("settings", nargs="*")
args = parser.parse_args()


def processes(root):
    """The process and all below it, by id."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = pathlib.Path(f"/proc/{entry}/stat").read_text()
                parents[int(entry)] = int(stat.rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
    found = {root}
    while grown := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= grown
    return found


def memory(pid):
    """Anonymous bytes, and shared ones, of a process."""
    try:
        lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0, 0
    fields = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if line.startswith(("RssAnon", "RssShmem"))}
    return fields.get("RssAnon", 0), fields.get("RssShmem", 0)


class Watch:
    """The most memory that a process and those below it take, looked at ten times a second."""

    def __init__(self, process):
        self.process, self.all, self.largest = process, 0, 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.look)
        self.thread.start()

    def look(self):
        while not self.ended.wait(0.1):
            each = [memory(pid) for pid in processes(self.process.pid)]
            # pages that several share are counted where most of them are
            self.all = max(self.all, sum(a for a, _ in each) + max((s for _, s in each), default=0))
            self.largest = max(self.largest, max((a for a, _ in each), default=0))

    def end(self):
        self.ended.set()
        self.thread.join()


def run(*words):
    command = [args.troupe, "run", args.job, f"job.run_root={args.folder}", *args.settings, *words]
    process = subprocess.Popen(command, stdout=sys.stderr)
    watch = Watch(process)
    code = process.wait()
    watch.end()
    if code != 0:
        sys.exit(f"true_size_lora: {' '.join(command)} ended with {code}")
    return watch


def size(folder):
    return sum(f.stat().st_size for f in pathlib.Path(folder).rglob("*") if f.is_file())


def adapters(checkpoint, name):
    """Values of the adapters that begin at zero, as bytes by name."""
    out = args.folder / name
    subprocess.run([args.troupe, "export", checkpoint, "--format", "lora", "--out", out], check=True, stdout=sys.stderr)
    values = {}
    for path in out.glob("*.safetensors"):
        data = path.read_bytes()
        length = int.from_bytes(data[:8], "little")
        for tensor, entry in json.loads(data[8 : 8 + length]).items():
            if tensor.endswith("lora_B.weight") or tensor.endswith("lora_B.default.weight"):
                begin, end = (8 + length + offset for offset in entry["data_offsets"])
                values[tensor] = data[begin:end]
    return values


def check(holds, what):
    if not holds:
        sys.exit(f"true_size_lora: {what}")


first = run("--resume", "never")
folder = (args.folder / "latest").resolve()
checkpoint = (folder / "checkpoints" / "latest").resolve()
base = [f for f in checkpoint.parent.iterdir() if f.is_dir() and f.name.startswith("base_")]
check(len(base) == 1, f"{checkpoint.parent} has {len(base)} bases, want 1")
before = (base[0].name, {f.name: (f.stat().st_mtime_ns, f.stat().st_size) for f in base[0].iterdir()})
trained = adapters(checkpoint, "adapters-3")
check(trained and all(any(value) for value in trained.values()), "an adapter is zero after three steps")

steps = json.loads((checkpoint / "manifest.json").read_text())["step"]
second = run("--resume", "auto", f"training.steps={steps + 1}", "checkpoint.interval=1")
resumed = (folder / "checkpoints" / "latest").resolve()
after = (base[0].name, {f.name: (f.stat().st_mtime_ns, f.stat().st_size) for f in base[0].iterdir()})
check(resumed != checkpoint and before == after, "the base was written again")
again = adapters(resumed, "adapters-4")
check(all(again[name] != trained[name] for name in trained), "an adapter did not change in the step after the resume")

rows = {}
for line in (folder / "metrics.jsonl").read_text().splitlines():
    row = json.loads(line)
    if "train/loss" in row["m"]:
        rows[row["step"]] = row["m"]
check(len(rows) == steps + 1 and all(math.isfinite(row["train/loss"]) for row in rows.values()), f"losses: {rows}")
planned = json.loads((folder / "plan.json").read_text())["learner_memory"]
check(size(checkpoint) < 3e9, f"{checkpoint} has {size(checkpoint)} bytes")

gib = 1 << 30
print("# DreamZero 5B, low-rank adapters, at its true size on a CPU\n")
print(f"{steps} steps and one after a resume; {len(trained)} adapted linears, all of whose adapters changed in both.\n")
print("| step | loss | gradient norm | s a step | of it forward and backward |\n|---|---|---|---|---|")
for step, row in sorted(rows.items()):
    print(f"| {step} | {row['train/loss']:.5f} | {row['train/grad_norm']:.4f} | {row['time/step']:.1f} | {row['time/compute']:.1f} |")
print(f"\n- the largest process (the learner) takes {first.largest / gib:.2f} GiB of anonymous memory at most, all processes with what "
      f"they share {first.all / gib:.2f}; after the resume {second.largest / gib:.2f} and {second.all / gib:.2f}")
print(f"- the plan counts with {sum(planned.values()) / gib:.2f} GiB for the learner: "
      + ", ".join(f"{name.removesuffix('_bytes')} {value / gib:.2f}" for name, value in planned.items() if value))
print(f"- a checkpoint has {size(checkpoint) / 1e9:.2f} GB, the base beside it, written once, {size(base[0]) / 1e9:.2f} GB")
