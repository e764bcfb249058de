"""One run of Gymnasium's vector environments under random actions: prints "steps cpu_seconds wall_seconds", as bench_env_sim --pool does.

    gym_vector_steps.py sync|async TASK --num-envs 8 --steps 1000

A CPU-second is user and system time of this process and of those that it started and that have ended. --version prints the versions.
"""
import argparse
import resource
import time

import gymnasium
import numpy as np


def cpu_seconds():
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", nargs="?", choices=("sync", "async"))
    parser.add_argument("task", nargs="?")
    parser.add_argument("--num-envs", type=int, default=8)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--version", action="store_true")
    args = parser.parse_args()
    if args.version:
        import mujoco
        print(f"Gymnasium {gymnasium.__version__}, MuJoCo {mujoco.__version__}, NumPy {np.__version__}")
        return
    env = gymnasium.make_vec(args.task, args.num_envs, vectorization_mode=args.mode)
    space, rng = env.single_action_space, np.random.default_rng(1)
    table = rng.uniform(space.low, space.high, (128, args.num_envs, *space.shape)).astype(space.dtype)
    env.reset(seed=1)
    for i in range(10):
        env.step(table[i])
    cpu, wall = cpu_seconds(), time.perf_counter()
    for i in range(args.steps):
        env.step(table[i % 128])
    wall = time.perf_counter() - wall
    env.close()
    print(args.num_envs * args.steps, f"{cpu_seconds() - cpu:.6f} {wall:.6f}")


if __name__ == "__main__":
    main()
