"""Tables for isolation_bench.sh, of runs in FOLDER/CASE.FORM.WORKERS.ROUND; needs Python's own library alone.

    isolation_report.py FOLDER --skip 2     Markdown tables: rates by form, and the share of every phase
"""
import argparse
import collections
import json
import pathlib
import statistics

FORMS = "inline", "thread", "process", "before"
LEARNER = {"advantages": "time/cal_adv_and_returns", "update": "time/actor_training", "publish": "time/publish", "wait": "time/generate_rollouts"}
ROLLOUT = "simulate", "policy", "record", "hand_over", "wait"


def read(run, skip):
    """(steps per second, shares of the learner's and the rollout workers' phases) of what follows the first iterations."""
    lines = [json.loads(text) for text in (run / "latest" / "metrics.jsonl").read_text().splitlines()]
    iterations = [line for line in lines if "time/step" in line["m"]]
    if len(iterations) <= skip or skip < 1:
        raise SystemExit(f"isolation_report: {run} has {len(iterations)} iterations; none is left after the first {skip} (and --skip is at least 1)")
    first, last, counted = iterations[skip - 1], iterations[-1], [line["m"] for line in iterations[skip:]]
    whole = sum(m["time/step"] for m in counted)
    shares = {f"learner {phase}": sum(m.get(key, 0) for m in counted) / whole for phase, key in LEARNER.items()}
    for phase in ROLLOUT:
        seen = [m[f"phase/rollout/{phase}"] for m in counted if f"phase/rollout/{phase}" in m]
        shares[f"rollout {phase}"] = statistics.mean(seen) if seen else float("nan")
    return (last["samples"] - first["samples"]) / (last["wall"] - first["wall"]), shares


def median_of(values):
    return statistics.median(values) if values else float("nan")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--skip", type=int, default=2)
    args = parser.parse_args()
    rates, shares = collections.defaultdict(dict), collections.defaultdict(list)
    cases = {}
    for run in sorted(args.folder.glob("*.*.*.*"), key=lambda run: run.stat().st_mtime):
        case, form, workers, number = run.name.split(".")
        cases[case, workers] = None
        rates[case, workers, form][number], found = read(run, args.skip)
        shares[case, workers, form].append(found)
    forms = [form for form in FORMS if any(key[2] == form for key in rates)]
    print("| case | rollout workers | " + " | ".join(f"{form}, steps/s" for form in forms) + " | process / inline, a round |\n|---|---|" + "---|" * (len(forms) + 1))
    for case, workers in cases:
        by_form = [rates[case, workers, form] for form in forms]
        ratios = [by_form[2][number] / by_form[0][number] for number in by_form[0] if number in by_form[2]]
        columns = [f"{median_of(list(by_round.values())):,.0f}" for by_round in by_form]
        print(f"| {case} | {workers} | " + " | ".join(columns) + f" | {median_of(ratios):.2f} ({min(ratios):.2f} .. {max(ratios):.2f}) |")
    names = [f"learner {phase}" for phase in LEARNER] + [f"rollout {phase}" for phase in ROLLOUT]
    print("\nShares of time in %: of the learner, and of the rollout workers (simulate with simulators: while they simulate; they report every 2 s,\n"
          "the first time of their start too, and runs that are shorter have no shares of theirs). Before: processes of an older commit.\n")
    print("| case | workers | form | " + " | ".join(name.replace("_", "-") for name in names) + " |\n|---|---|---|" + "---|" * len(names))
    for (case, workers, form), found in shares.items():
        medians = [median_of([share[name] for share in found]) for name in names]
        print(f"| {case} | {workers} | {form} | " + " | ".join(f"{100 * share:.0f}" if share == share else "" for share in medians) + " |")


if __name__ == "__main__":
    main()
