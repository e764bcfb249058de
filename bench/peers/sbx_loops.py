"""PPO and SAC of sbx (Stable-Baselines3 in JAX) over EnvPool: peers of loop_bench.sh.

    sbx_loops.py --algorithm ppo [--task HalfCheetah-v5] [--num-envs 64] [--steps 32] [--epochs 10] [--minibatches 32] [--hidden 64] [--iterations 20]
                 [--skip 2] [--env-threads 2] [--seed 1]
    sbx_loops.py --algorithm sac [--task Pendulum-v1] [--num-envs 4] [--hidden 64] [--steps 8192] [--learning-starts 1024] [--env-threads 1] [--seed 1]

PPO has the numbers of ppo_cleanrl_style.py, but no clipping of values, which sbx does not offer, and two gradient norms, of actor and critic; where
actions are in a range, observations and rewards go through VecNormalize. SAC has those of the recipe rl_pendulum_sac: 2xHIDDEN ReLU, batch 256, one
update a step, as many updates in one compiled call as there are environments. EnvPool stands in for Stable-Baselines3's own vectors of environments,
which step one after the other in Python or each in a process of its own.

Prints "steps wall_seconds mean_return" of PPO's iterations after the first SKIP, or "updates seconds mean_return" of SAC's updates after the first
1,024; what is compiled is compiled before. The return is of the last 100 episodes that ended (nan: none). --version prints what it runs on.
"""
import argparse
import collections
import time

import numpy as np
import sbx
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

GAMMA, WARM_UPDATES = 0.99, 1024


class EnvPoolVector(VecEnv):
    """EnvPool as a VecEnv: an episode that ended begins anew at once, and its last observation is in the infos."""

    def __init__(self, args):
        import envpool
        self.inner = envpool.make(args.task, env_type="gymnasium", num_envs=args.num_envs, num_threads=args.env_threads, seed=args.seed)
        super().__init__(args.num_envs, self.inner.observation_space, self.inner.action_space)
        self.totals, self.finished = np.zeros(args.num_envs), collections.deque(maxlen=100)

    def reset(self):
        return self.inner.reset()[0]

    def step_async(self, actions):
        self.sent = actions.astype(self.action_space.dtype)

    def step_wait(self):
        obs, reward, terminated, truncated, _ = self.inner.step(self.sent)
        done, infos = np.logical_or(terminated, truncated), [{} for _ in range(self.num_envs)]
        self.totals += reward
        if done.any():
            ended, obs = np.flatnonzero(done), obs.copy()
            for i in ended:
                infos[i] = {"terminal_observation": obs[i].copy(), "TimeLimit.truncated": bool(truncated[i] and not terminated[i])}
            obs[ended] = self.inner.reset(ended)[0]
            self.finished.extend(self.totals[ended])
            self.totals[ended] = 0
        return obs, reward, done, infos

    def close(self):
        self.inner.close()

    def env_is_wrapped(self, wrapper_class, indices=None):
        return [False] * self.num_envs

    def get_attr(self, attr_name, indices=None):
        return [getattr(self, attr_name)] * self.num_envs

    def set_attr(self, attr_name, value, indices=None):
        raise NotImplementedError

    def env_method(self, method_name, *args, indices=None, **kwargs):
        raise NotImplementedError


class Clock(BaseCallback):
    """Starts before the first rollout with nothing left to skip."""

    def __init__(self, to_skip):
        super().__init__()
        self.to_skip, self.begin = to_skip, None

    def _on_rollout_start(self):
        if self.begin is None and self.to_skip(self.model) <= 0:
            self.begin, self.steps, self.updates = time.perf_counter(), self.model.num_timesteps, self.model._n_updates

    def _on_step(self):
        return True


def ppo(args, envs):
    import gymnasium
    vector = envs if isinstance(envs.action_space, gymnasium.spaces.Discrete) else VecNormalize(envs, gamma=GAMMA)
    model = sbx.PPO("MlpPolicy", vector, learning_rate=lambda left: 3e-4 * left, n_steps=args.steps, batch_size=args.num_envs * args.steps // args.minibatches,
                    n_epochs=args.epochs, gamma=GAMMA, gae_lambda=0.95, clip_range=0.2, ent_coef=0.0, vf_coef=0.25, max_grad_norm=0.5, seed=args.seed,
                    policy_kwargs={"net_arch": [args.hidden, args.hidden], "ortho_init": True})  # sbx has no half in its value loss
    clock = Clock(lambda model: args.skip * args.num_envs * args.steps - model.num_timesteps)
    model.learn(args.iterations * args.num_envs * args.steps, callback=clock, log_interval=None)
    return model.num_timesteps - clock.steps, clock.begin


def sac(args, envs):
    from flax import linen
    model = sbx.SAC("MlpPolicy", envs, learning_rate=1e-3, qf_learning_rate=1e-3, buffer_size=100_000, learning_starts=args.learning_starts, batch_size=256,
                    tau=0.005, gamma=GAMMA, train_freq=1, gradient_steps=-1, seed=args.seed,
                    policy_kwargs={"net_arch": [args.hidden, args.hidden], "activation_fn": linen.relu})
    clock = Clock(lambda model: WARM_UPDATES - model._n_updates)
    model.learn(args.steps, callback=clock, log_interval=None)
    return model._n_updates - clock.updates, clock.begin


def versions():
    import envpool
    import flax
    import jax
    import optax
    import stable_baselines3
    print(f"sbx {sbx.__version__} with Stable-Baselines3 {stable_baselines3.__version__}, JAX {jax.__version__}, Flax {flax.__version__}, Optax "
          f"{optax.__version__}, EnvPool {envpool.__version__}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--algorithm", choices=["ppo", "sac"], default="ppo")
    parser.add_argument("--task")
    parser.add_argument("--version", action="store_true")
    numbers = {"num-envs": None, "steps": None, "epochs": 10, "minibatches": 32, "hidden": 64, "iterations": 20, "skip": 2, "learning-starts": 1024,
               "env-threads": None, "seed": 1}
    for name, value in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    args = parser.parse_args()
    defaults = {"ppo": ("HalfCheetah-v5", 64, 32, 2), "sac": ("Pendulum-v1", 4, 8192, 1)}[args.algorithm]
    for name, value in zip(("task", "num_envs", "steps", "env_threads"), defaults):
        if getattr(args, name) is None:
            setattr(args, name, value)
    if args.algorithm == "ppo" and args.iterations <= args.skip:
        parser.error(f"--iterations {args.iterations} leaves nothing after the first {args.skip} (--skip)")
    if args.algorithm == "sac" and args.steps <= args.learning_starts + WARM_UPDATES:
        parser.error(f"--steps {args.steps} leaves no update after {args.learning_starts} steps at random and {WARM_UPDATES} updates")
    if args.version:
        versions()
        return
    envs = EnvPoolVector(args)
    done, begin = (ppo if args.algorithm == "ppo" else sac)(args, envs)
    seconds = time.perf_counter() - begin
    print(done, f"{seconds:.6f} {np.mean(envs.finished) if envs.finished else float('nan'):.1f}", flush=True)


if __name__ == "__main__":
    main()
