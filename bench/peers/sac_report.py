"""Rates and tables for sac_bench.sh; needs Python's own library alone.

    sac_report.py run RUN       "updates seconds mean_return" of a run of `troupe run` with sac, from metrics.jsonl
    sac_report.py fastest FILE  the setting of the line of "setting updates seconds" with the highest rate
    sac_report.py table FILE    Markdown tables of lines "seed side updates seconds [mean_return]"; sides are troupe, peer and products
"""
import argparse
import collections
import json
import pathlib

from ppo_report import spread


def run(folder):
    lines = [json.loads(text) for text in (folder / "metrics.jsonl").read_text().splitlines()]
    steps = [line for line in lines if line["m"].get("train/updates", 0) > 0]
    evaluations = [line["m"]["eval/return"] for line in lines if "eval/return" in line["m"]]
    if len(steps) < 2 or not evaluations:
        raise SystemExit(f"sac_report: {folder}/metrics.jsonl has {len(steps)} steps with updates and {len(evaluations)} evaluations; wanted are two and one")
    # from the end of the first step with updates: what lies between steps counts too
    updates = steps[-1]["m"]["train/updates"] - steps[0]["m"]["train/updates"]
    print(int(updates), f"{steps[-1]['wall'] - steps[0]['wall']:.6f} {evaluations[-1]:.1f}")


def fastest(records):
    lines = [text.split() for text in records.read_text().splitlines()]
    print(max(lines, key=lambda line: float(line[1]) / float(line[2]))[0])


def table(records):
    rates, returns = collections.defaultdict(dict), collections.defaultdict(dict)  # side -> seed
    for text in records.read_text().splitlines():
        seed, side, updates, seconds, *mean = text.split()
        rates[side][seed] = float(updates) / float(seconds)
        if mean:
            returns[side][seed] = float(mean[0])
    print("| seed | Troupe: return | PyTorch: return | Troupe: updates/s | PyTorch: updates/s | Troupe / PyTorch |\n|---|---|---|---|---|---|")
    for seed in returns["troupe"]:
        ours, theirs = rates["troupe"][seed], rates["peer"][seed]
        print(f"| {seed} | {returns['troupe'][seed]:,.0f} | {returns['peer'][seed]:,.0f} | {ours:,.1f} | {theirs:,.1f} | {ours / theirs:.2f} |")
    print("\n| side | updates per second | share of the bound |\n|---|---|---|")
    bound = rates["products"]
    for side, name in (("products", "bound: the bare matrix products of an update"), ("troupe", "Troupe"), ("peer", "PyTorch")):
        shares = [100 * rate / bound[seed] for seed, rate in rates[side].items()]
        print(f"| {name} | {spread(rates[side].values(), 1)} | {spread(shares, 0)} % |")


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    for name, function in {"run": run, "fastest": fastest, "table": table}.items():
        command = commands.add_parser(name)
        command.add_argument("path", type=pathlib.Path)
        command.set_defaults(function=function)
    args = parser.parse_args()
    args.function(args.path)


if __name__ == "__main__":
    main()
