"""Rates and tables for ppo_bench.sh, pixels_bench.sh and loop_bench.sh; needs Python's own library alone.

    ppo_report.py rate RUN --skip 2     "steps wall_seconds mean_return" of a run of `troupe run` after its first iterations, from metrics.jsonl
    ppo_report.py table RECORDS [--unit "environment steps"] [--wanted PEER=RATIO ...]
                                        Markdown tables of lines "round side setting steps wall_seconds ..."; --unit says what the steps are, --wanted
                                        which ratio to a peer is the goal

Sides are explicit, generic, pictures and loop (ours), envpool, compiled, gymnasium, gymnasium-compiled, jax, sbx, sac and bound; a side's figure is its fastest
setting's, by the median over rounds.
"""
import argparse
import collections
import json
import pathlib
import statistics

NAMES = {"explicit": "Troupe, explicit MLP backward", "generic": "Troupe, generic unit", "envpool": "PyTorch PPO over EnvPool",
         "compiled": "PyTorch PPO, torch.compile, over EnvPool", "gymnasium": "PyTorch PPO over Gymnasium's vector API",
         "pictures": "Troupe", "gymnasium-compiled": "PyTorch PPO, torch.compile, over Gymnasium's vector API",
         "loop": "Troupe", "jax": "JAX, the loop compiled as one program", "sbx": "sbx over EnvPool", "sac": "PyTorch SAC over Gymnasium", "bound": "Bound: bare parts, one after the other"}
PEERS = "envpool", "compiled", "gymnasium", "gymnasium-compiled", "jax", "sbx", "sac", "bound"
WANTED = {"explicit": 3.0, "generic": 2.0, "pictures": None, "loop": None}  # of the better peer; None: no goal is set, or --wanted sets it


def rate(run, skip):
    lines = [json.loads(text) for text in (run / "metrics.jsonl").read_text().splitlines()]
    iterations = [line for line in lines if "time/step" in line["m"]]
    if len(iterations) <= skip or skip < 1:
        raise SystemExit(f"ppo_report: {run}/metrics.jsonl has {len(iterations)} iterations; none is left after the first {skip} (and --skip is at least 1)")
    # from the end of the last skipped iteration to the end of the last one: what lies between iterations counts too
    first, last = iterations[skip - 1], iterations[-1]
    returns = [line["m"]["env/return"] for line in iterations if "env/return" in line["m"]]
    steps = last["samples"] - first["samples"]
    print(steps, f"{last['wall'] - first['wall']:.6f} {returns[-1] if returns else float('nan'):.1f}")


def spread(values, digits):
    return f"{statistics.median(values):,.{digits}f} ({min(values):,.{digits}f} .. {max(values):,.{digits}f})"


def tables(records, unit, wanted_of):
    rates = collections.defaultdict(dict)  # (side, setting) -> round -> steps per second
    for text in records.read_text().splitlines():
        number, side, setting, steps, wall = text.split()[:5]
        rates[side, setting][int(number)] = float(steps) / float(wall)
    best = {}
    for (side, setting), by_round in rates.items():
        if side not in best or statistics.median(by_round.values()) > statistics.median(rates[best[side]].values()):
            best[side] = side, setting
    print(f"| side | setting | {unit} per second | best of its side |\n|---|---|---|---|")
    for (side, setting), by_round in rates.items():
        print(f"| {NAMES[side]} | {setting.replace(',', ', ')} | {spread(by_round.values(), 0)} | {'yes' if best[side] == (side, setting) else ''} |")
    peers = [best[side] for side in PEERS if side in best]
    if not peers:
        return
    better = max(peers, key=lambda key: statistics.median(rates[key].values()))
    print("\n| ours, at its best | peer, at its best | ours / peer, a round | wanted |\n|---|---|---|---|")
    for side, wanted in WANTED.items():
        for peer in peers if side in best else []:
            ours, theirs = rates[best[side]], rates[peer]
            goal = f">= {wanted:.0f}" if wanted and peer == better else f">= {wanted_of[peer[0]]}" if peer[0] in wanted_of else ""
            print(f"| {NAMES[side]} | {NAMES[peer[0]]} | {spread([ours[r] / theirs[r] for r in ours if r in theirs], 2)} | {goal} |")


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("rate")
    one.add_argument("run", type=pathlib.Path)
    one.add_argument("--skip", type=int, default=2)
    table = commands.add_parser("table")
    table.add_argument("records", type=pathlib.Path)
    table.add_argument("--unit", default="environment steps")
    table.add_argument("--wanted", nargs="*", default=[])
    args = parser.parse_args()
    rate(args.run, args.skip) if args.command == "rate" else tables(args.records, args.unit, dict(pair.split("=") for pair in args.wanted))


if __name__ == "__main__":
    main()
