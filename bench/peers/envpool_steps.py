"""One run of EnvPool under random actions: prints "steps cpu_seconds wall_seconds", as bench_env_sim --pool does.

    envpool_steps.py TASK --num-envs 64 --threads 2 --groups 1 --steps 1000

One group: every environment steps, then the next step begins (synchronous). More: EnvPool's asynchronous mode with batches of
num_envs / groups, each batch sent again as soon as it is back. A CPU-second is this process's user and system time. --version prints which
EnvPool it is and which MuJoCo is linked into it.
"""
import argparse
import collections
import pathlib
import re
import resource
import time

import envpool
import numpy as np


def linked_mujoco():
    folder = pathlib.Path(envpool.__file__).parent
    found = collections.Counter()
    for library in [*folder.glob("mujoco/mujoco_gym*.so"), *folder.parent.glob("envpool.libs/*mujoco*")]:
        found.update(m.decode() for m in re.findall(rb"\0([23]\.\d{1,2}\.\d{1,2})\0", library.read_bytes()))
    return found.most_common(1)[0][0] if found else "unknown"


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def run(args):
    batch = args.num_envs // args.groups
    env = envpool.make(args.task, env_type="gymnasium", num_envs=args.num_envs, batch_size=batch, num_threads=args.threads, seed=1)
    space, rng = env.action_space, np.random.default_rng(1)
    table = rng.uniform(space.low, space.high, (128, args.num_envs, *space.shape)).astype(space.dtype)
    if args.groups == 1:
        env.reset()
        for i in range(args.warm):
            env.step(table[i % 128])
        cpu, wall = cpu_seconds(), time.perf_counter()
        for i in range(args.steps):
            env.step(table[i % 128])
    else:
        env.async_reset()
        ids = env.recv()[-1]["env_id"]
        for i in range(args.warm * args.groups):
            env.send(table[i % 128, :batch], ids)
            ids = env.recv()[-1]["env_id"]
        cpu, wall = cpu_seconds(), time.perf_counter()
        for i in range(args.steps * args.groups):
            env.send(table[i % 128, :batch], ids)
            ids = env.recv()[-1]["env_id"]
    print(args.num_envs * args.steps, f"{cpu_seconds() - cpu:.6f} {time.perf_counter() - wall:.6f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("task", nargs="?")
    parser.add_argument("--num-envs", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--groups", type=int, default=1)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--warm", type=int, default=10)
    parser.add_argument("--version", action="store_true")
    args = parser.parse_args()
    if args.version:
        print(f"EnvPool {envpool.__version__} with MuJoCo {linked_mujoco()}, NumPy {np.__version__}")
    else:
        run(args)


if __name__ == "__main__":
    main()
