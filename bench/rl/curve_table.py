"""The table of curves.sh; needs Python's own library alone.

    curve_table.py FOLDER [--solve RETURN]

FOLDER holds one folder per seed, seed-N, with `latest` (the run), wall (seconds of `troupe run`), exit (its status) and, where it ran, eval.json
(`troupe eval --json`). Prints Markdown: a row per seed, mean and standard deviation over seeds, and the training curve in tenths.

Training return: mean over the episodes that ended in the last tenth of the run, with the policy's draws; what published curves of PPO end with.
Solved at: environment steps and seconds when the return first exceeded RETURN (default: the environment's reward threshold) and did so until the
next record: in the evaluations of the run, where it made several (eval.every), else in the mean of the episodes that ended in an iteration.
"""
import argparse
import json
import pathlib
import statistics

TENTHS = [i / 10 for i in range(1, 11)]


class Seed:
    def __init__(self, folder):
        self.number = int(folder.name.removeprefix("seed-"))
        self.exit_status, self.wall = int((folder / "exit").read_text()), float((folder / "wall").read_text())
        run, evaluation = folder / "latest", folder / "eval.json"
        metrics = run / "metrics.jsonl"
        self.lines = [json.loads(text) for text in metrics.read_text().splitlines()] if metrics.exists() else []
        played = json.loads(evaluation.read_text()) if evaluation.exists() else {}
        evaluated = [line["m"] for line in self.lines if "eval/return" in line["m"]]
        results = played.get("results") or (evaluated[-1] if evaluated else {})
        self.source = "troupe eval" if played else "the run's last evaluation"
        self.threshold = results.get("reward_threshold")
        self.episodes = results.get("eval/num_trajectories")
        self.mean_return, self.std_return, self.success = (results.get(f"eval/{name}") for name in ("return", "return_std", "success_once"))
        self.steps = self.lines[-1]["samples"] if self.lines else None
        self.begin = self.lines[0]["wall"] - self.lines[0]["m"].get("time/step", 0) if self.lines else 0

    def points(self, name):
        return [(line["samples"], line["wall"] - self.begin, line["m"][name]) for line in self.lines if name in line["m"]]

    def solved_at(self, threshold):
        curve = self.points("eval/return")
        curve = curve if len(curve) > 1 else self.points("env/return")
        for here, after in zip(curve, curve[1:] + curve[-1:]):
            if min(here[2], after[2]) > threshold:
                return f"{here[0]:,}", f"{here[1]:.1f}"
        return "never", "-"

    def curve(self):
        """Mean return of the training episodes that ended in each tenth of the run; None where none did."""
        parts = []
        for low, high in zip([0.0] + TENTHS, TENTHS):
            inside = [line["m"] for line in self.lines if "env/return" in line["m"] and low * self.steps < line["samples"] <= high * self.steps]
            ended = sum(m["env/num_trajectories"] for m in inside)
            parts.append(sum(m["env/return"] * m["env/num_trajectories"] for m in inside) / ended if ended else None)
        return parts

    def training_return(self):
        return self.curve()[-1] if self.lines else None


def number(value, digits=None):
    if value is None:
        return "-"
    if digits is None:
        digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 10 else 3
    return f"{value:,.{digits}f}"


def mean_and_deviation(values, digits=None):
    values = [v for v in values if v is not None]
    if not values:
        return "-"
    return number(statistics.fmean(values), digits) + (f" +- {number(statistics.stdev(values), digits)}" if len(values) > 1 else "")


def row(cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--solve", type=float)
    args = parser.parse_args()
    seeds = sorted((Seed(folder) for folder in args.folder.glob("seed-*")), key=lambda seed: seed.number)
    finished = [seed for seed in seeds if seed.exit_status == 0]
    solve = args.solve if args.solve is not None else next((seed.threshold for seed in seeds if seed.threshold is not None), None)
    head = ["seed", "evaluation: mean return", "+- over its episodes", "success", "training return", "environment steps", "wall seconds"]
    row(head + ([] if solve is None else [f"steps until return > {solve:,g}", "seconds until then"]))
    row(["---"] * (len(head) + (0 if solve is None else 2)))
    for seed in seeds:
        cells = [seed.number, number(seed.mean_return), number(seed.std_return), number(seed.success, 3), number(seed.training_return()),
                 f"{seed.steps:,}" if seed.steps else "-", number(seed.wall, 1) if seed.exit_status == 0 else f"failed with exit status {seed.exit_status}"]
        row(cells + ([] if solve is None else list(seed.solved_at(solve))))
    print(f"\n- evaluation: {', '.join(sorted({f'{seed.episodes:.0f} episodes a seed, {seed.source}' for seed in finished if seed.episodes})) or 'none'}")
    print(f"- mean return over {len(finished)} seeds: {mean_and_deviation([seed.mean_return for seed in finished])} (mean +- sample standard deviation)"
          + (f", lowest {number(min(seed.mean_return for seed in finished))}" if finished and all(s.mean_return is not None for s in finished) else ""))
    print(f"- training return over seeds: {mean_and_deviation([seed.training_return() for seed in finished])}")
    if any(seed.success is not None for seed in finished):
        print(f"- success over seeds: {mean_and_deviation([seed.success for seed in finished], 3)}")
    print(f"- wall seconds of a run: {mean_and_deviation([seed.wall for seed in finished], 1)}")
    if solve is not None:
        solved = [seed for seed in finished if seed.mean_return is not None and seed.mean_return > solve]
        print(f"- evaluation above {solve:,g}: {len(solved)} of {len(seeds)} seeds")
    if any(seed.points("env/return") for seed in seeds):
        print("\nMean return of the training episodes that ended in each tenth of a run:\n")
        row(["seed"] + [f"{tenth:.0%}" for tenth in TENTHS])
        row(["---"] * 11)
        for seed in seeds:
            if seed.lines:
                row([seed.number] + [number(value) for value in seed.curve()])


if __name__ == "__main__":
    main()
