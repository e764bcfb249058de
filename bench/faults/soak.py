#!/usr/bin/env python3
"""Runs a job for some minutes and watches its processes. Started by soak.sh; TROUPE_BINARY names the program.

Exit code 0 only if no process was replaced, descriptors and threads of each were as many at the end as after the
first third, and the least-squares slope of its resident memory over the last two thirds is at most 4 MiB/h beyond
its 95 % interval, `verify` finds every position once, and nothing of the job is left. Where two thirds are less than
20 minutes, the slope may make as much of a difference as 4 MiB/h do in 20 minutes.
"""
import argparse
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

MAX_SLOPE = 4.0  # MiB/h, over
FULL_WINDOW = 1200  # seconds; shorter ones are allowed the same growth in all
BLOCKS, T_QUANTILE = 20, 2.101  # Student's t for 95 % and BLOCKS - 2 degrees of freedom
PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / 2**20

JOBS = {
    "sft": ["quickstart:sft", "training.steps=100000000", "training.global_batch_size=8", "training.micro_batch_size=4",
            "eval.every=0", "eval.open_loop.at_end=false", "checkpoint.interval=200",
            'cluster.component_placement.decoder={node_group: node, placement: "0:0-15"}'],
    # a buffer that is full within the first third: until then memory grows by design
    "sac": ["rl_pendulum_sac", "training.steps=100000000", "checkpoint.interval=20", "eval.every=0",
            "training.global_batch_size=256", "training.micro_batch_size=128", "env.num_envs=8", "env.blocks=8",
            "algorithm.sac.replay_capacity=20000", "cluster.isolation.env=process",
            'cluster.component_placement.learner={node_group: node, placement: "0:0-1"}',
            'cluster.component_placement.env={node_group: node, placement: "0:0-3"}',
            'cluster.component_placement.rollout={node_group: node, placement: "0:0-3"}'],
}
DESCRIPTIONS = {"sft": "SFT, 2 ranks, 16 decoders", "sac": "SAC, 2 ranks, 4 env, 4 rollout"}


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def processes(root):
    """Name -> pid of the job's program and its host processes."""
    found = {"controller": root}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        stat = read(f"/proc/{name}/stat")
        fields = stat[stat.rfind(b") ") + 2:].split() if stat else []
        if len(fields) < 2 or int(fields[1]) != root or fields[0] == b"Z":
            continue
        words = read(f"/proc/{name}/cmdline").decode(errors="replace").split("\0")
        if "--actor" in words and "--incarnation" in words:
            instance = words[words.index("--actor") + 1] + "#" + words[words.index("--incarnation") + 1]
            found[instance] = int(name)
    return found


def sample(pid):
    """Resident MiB, descriptors, threads; None for a process that is gone."""
    try:
        resident = int(read(f"/proc/{pid}/statm").split()[1]) * PAGE_MIB
        return resident, len(os.listdir(f"/proc/{pid}/fd")), len(os.listdir(f"/proc/{pid}/task"))
    except (IndexError, FileNotFoundError, ProcessLookupError):
        return None


def block_means(points):
    """Memory grows in steps, so neighbouring samples are not independent; means of blocks nearly are."""
    size = len(points) / BLOCKS
    blocks = [points[round(i * size):round((i + 1) * size)] for i in range(BLOCKS)]
    return [(statistics.mean(p[0] for p in block), statistics.mean(p[1] for p in block)) for block in blocks]


def slope(points):
    """Least-squares slope and half of its 95 % interval, per hour, of (seconds, value)."""
    points = block_means(points)
    n = len(points)
    mean_x = sum(x for x, _ in points) / n
    mean_y = sum(y for _, y in points) / n
    square = sum((x - mean_x) ** 2 for x, _ in points)
    b = sum((x - mean_x) * (y - mean_y) for x, y in points) / square
    residual = sum((y - mean_y - b * (x - mean_x)) ** 2 for x, y in points)
    return b * 3600, T_QUANTILE * math.sqrt(residual / (n - 2) / square) * 3600


def judge(name, points):
    """A row of the table and what is wrong with it."""
    first, last = points[:max(3, len(points) // 4)], points[-max(3, len(points) // 4):]
    wrong = []
    counts = []
    for column, what in ((2, "descriptors"), (3, "threads")):
        before, after = (int(statistics.median(p[column] for p in part)) for part in (first, last))
        counts.append(f"{before} -> {after}")
        if after > before:
            wrong.append(f"{name}: {what} grew from {before} to {after}")
    b, half = slope([(p[0], p[1]) for p in points])
    allowed = MAX_SLOPE * max(1.0, FULL_WINDOW / (points[-1][0] - points[0][0]))
    if b - half > allowed:
        wrong.append(f"{name}: resident memory grows by {b:.1f} +- {half:.1f} MiB/h, more than {allowed:.1f}")
    row = f"| {name} | {points[-1][1]:.0f} | {b:+.2f} +- {half:.2f} | {counts[0]} | {counts[1]} |"
    return row, wrong


def soak(kind, minutes, every):
    folder = tempfile.mkdtemp(prefix="troupe-soak-")
    runtime = os.path.join(folder, "runtime")
    os.mkdir(runtime, 0o700)
    binary = os.environ["TROUPE_BINARY"]
    environment = dict(os.environ, XDG_RUNTIME_DIR=runtime)
    words = [binary, "run", *JOBS[kind], f"job.run_root={folder}/runs"]
    with open(os.path.join(folder, "job.log"), "wb") as log:
        job = subprocess.Popen(words, cwd=folder, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    begin, series, wrong = time.monotonic(), {}, []
    try:
        while time.monotonic() - begin < minutes * 60:
            time.sleep(every)
            if job.poll() is not None:
                return [], [f"the job ended with {job.returncode}; its log is {folder}/job.log"]
            now = time.monotonic() - begin
            for name, pid in processes(job.pid).items():
                taken = sample(pid)
                if taken:
                    series.setdefault(name, []).append((now, *taken))
        job.send_signal(signal.SIGINT)
        code = job.wait(timeout=120)
        if code != 130:
            wrong.append(f"the job ended with {code}, not 130")
    finally:
        if job.poll() is None:
            job.kill()
            job.wait()
    checked = subprocess.run([binary, "verify", f"{folder}/runs/latest"], capture_output=True, text=True)
    if checked.returncode != 0 or "lost 0  doubled 0" not in checked.stdout:
        wrong.append("verify: " + checked.stdout + checked.stderr)
    left = [name for _, _, names in os.walk(runtime) for name in names]
    if left:
        wrong.append(f"left in the runtime folder: {left}")
    rows = []
    for name in sorted(series):
        late = [point for point in series[name] if point[0] > minutes * 20]
        if len(late) < 2 * BLOCKS or series[name][-1][0] < minutes * 60 - 3 * every:
            wrong.append(f"{name}: this process did not live from the first third to the end")
            continue
        row, complaints = judge(name, late)
        rows.append(row)
        wrong += complaints
    if wrong:
        wrong.append(f"the files stay in {folder}")
    else:
        shutil.rmtree(folder)
    return rows, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--every", type=float, default=2, help="seconds between samples")
    parser.add_argument("--job", choices=sorted(JOBS), action="append", help="both unless named")
    parser.add_argument("--out", help="result file")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("soak: NOT RUN: wants root, because decoders hide their descriptors from other users' processes")
        return 77
    page, failed = "# Soak\n", False
    for kind in options.job or ["sft", "sac"]:
        rows, wrong = soak(kind, options.minutes, options.every)
        text = [f"\n## {DESCRIPTIONS[kind]}, {options.minutes:g} minutes", "",
                "Slopes over the last two thirds, with their 95 % interval.", "",
                "| process | resident at the end, MiB | slope, MiB/h | descriptors | threads |",
                "|---|---|---|---|---|", *rows]
        print("\n".join(text), flush=True)
        page += "\n".join(text) + "\n"
        for sentence in wrong:
            print(f"soak: {sentence}", file=sys.stderr)
        failed = failed or bool(wrong)
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            file.write(page)
    print(f"soak: {'FAILED' if failed else 'flat'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
