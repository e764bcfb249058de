"""PPO as CleanRL publishes it, in one file of PyTorch, over EnvPool or over Gymnasium's vector API: the peer of ppo_bench.sh, and one of loop_bench.sh.

    ppo_cleanrl_style.py --envs envpool|gym-sync|gym-async --torch-threads 1 [--task HalfCheetah-v5] [--env-threads 2] [--num-envs 64] [--steps 32]
                         [--minibatches 32] [--epochs 10] [--hidden 64] [--compile] [--iterations 20] [--skip 2] [--seed 1]

Structure and numbers follow Huang et al. (2022), "The 37 implementation details of proximal policy optimization": separate 2xHIDDEN tanh networks with
orthogonal initial values, a log standard deviation without state, Adam with eps 1e-5 and a rate falling to 0, clipped value loss, advantages
normalised per minibatch, gradient norm 0.5, normalised and clipped observations and rewards, an episode's end cuts the return. Differs only where
many environments ask for it: one running mean for all of them, in NumPy arrays. Where actions are a choice among few (CartPole-v1), the network has
logits in place of a mean, and observations and rewards stay as they are. The program counts approximate KL and clip fraction, and logs
nothing. With --compile, policy calls and the loss of a minibatch go through torch.compile, and distributions do not validate their arguments, which
a graph cannot hold; the program compiles in the first SKIP iterations.

Prints "steps wall_seconds mean_return" of the iterations after the first SKIP; the return is of the last 100 episodes that ended (nan: none).
--version prints what it runs on.
"""
import argparse
import collections
import time

import numpy as np
import torch
from torch import nn

GAMMA, GAE_LAMBDA, CLIP, VALUE_COEF, ENTROPY_COEF, MAX_GRAD_NORM, LEARNING_RATE = 0.99, 0.95, 0.2, 0.5, 0.0, 0.5, 3e-4


class RunningMoments:
    """Mean and variance of all rows seen so far."""

    def __init__(self, shape):
        self.mean, self.var, self.count = np.zeros(shape), np.ones(shape), 1e-4

    def add(self, rows):
        count = self.count + len(rows)
        delta = rows.mean(0) - self.mean
        self.var = (self.var * self.count + rows.var(0) * len(rows) + delta**2 * self.count * len(rows) / count) / count
        self.mean, self.count = self.mean + delta * len(rows) / count, count


class Environments:
    """N environments in step. With actions in a range: clipped ones, and normalised observations and rewards."""
    task_options = {}  # of the task's constructor, in Gymnasium

    def __init__(self, args):
        if args.envs == "envpool":
            import envpool
            self.inner = envpool.make(args.task, env_type="gymnasium", num_envs=args.num_envs, num_threads=args.env_threads, seed=args.seed)
            self.actions, self.obs_shape = self.inner.action_space, self.inner.observation_space.shape
        else:
            import gymnasium
            self.inner = gymnasium.make_vec(args.task, num_envs=args.num_envs, vectorization_mode=args.envs.removeprefix("gym-"),
                                            vector_kwargs={"autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP}, **self.task_options)
            self.actions, self.obs_shape = self.inner.single_action_space, self.inner.single_observation_space.shape
        self.choices = int(getattr(self.actions, "n", 0))  # 0: a range
        self.action_shape = self.actions.shape
        self.obs_moments, self.return_moments = RunningMoments(self.obs_shape), RunningMoments(())
        self.discounted, self.totals = np.zeros(args.num_envs), np.zeros(args.num_envs)
        self.finished = collections.deque(maxlen=100)
        self.first_seed = args.seed if args.envs != "envpool" else None

    def reset(self):
        obs, _ = self.inner.reset() if self.first_seed is None else self.inner.reset(seed=self.first_seed)
        return self.normalised(obs)

    def normalised(self, obs):
        if self.choices:
            return torch.from_numpy(obs.astype(np.float32))
        self.obs_moments.add(obs)
        scaled = (obs - self.obs_moments.mean) / np.sqrt(self.obs_moments.var + 1e-8)
        return torch.from_numpy(np.clip(scaled, -10, 10).astype(np.float32))

    def scaled(self, reward, done):
        if self.choices:
            return reward
        self.discounted = self.discounted * GAMMA + reward
        self.return_moments.add(self.discounted)
        self.discounted[done] = 0
        return np.clip(reward / np.sqrt(self.return_moments.var + 1e-8), -10, 10)

    def step(self, action):
        if not self.choices:
            action = np.clip(action, self.actions.low, self.actions.high)
        obs, reward, terminated, truncated, _ = self.inner.step(action.astype(self.actions.dtype))
        done = np.logical_or(terminated, truncated)
        scaled = self.scaled(reward, done)
        self.totals += reward
        self.finished.extend(self.totals[done])
        self.totals[done] = 0
        return self.normalised(obs), torch.from_numpy(scaled.astype(np.float32)), torch.from_numpy(done.astype(np.float32))


def linear(inputs, outputs, gain=2**0.5):
    layer = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


class ActorCritic(nn.Module):
    def __init__(self, obs_size, action_size, hidden):
        super().__init__()
        self.critic = nn.Sequential(linear(obs_size, hidden), nn.Tanh(), linear(hidden, hidden), nn.Tanh(), linear(hidden, 1, 1.0))
        self.actor = nn.Sequential(linear(obs_size, hidden), nn.Tanh(), linear(hidden, hidden), nn.Tanh(), linear(hidden, action_size, 0.01))
        self.log_std = nn.Parameter(torch.zeros(1, action_size))

    def forward(self, obs, action=None):
        mean = self.actor(obs)
        policy = torch.distributions.Normal(mean, self.log_std.expand_as(mean).exp())
        action = policy.sample() if action is None else action
        return action, policy.log_prob(action).sum(1), policy.entropy().sum(1), self.critic(obs).squeeze(1)


class ChoosingActorCritic(ActorCritic):
    def __init__(self, obs_size, choices, hidden):
        super().__init__(obs_size, choices, hidden)
        del self.log_std

    def forward(self, obs, action=None):
        policy = torch.distributions.Categorical(logits=self.actor(obs))
        action = policy.sample() if action is None else action
        return action, policy.log_prob(action), policy.entropy(), self.critic(obs).squeeze(1)


def vector_network(envs, args):
    if envs.choices:
        return ChoosingActorCritic(int(np.prod(envs.obs_shape)), envs.choices, args.hidden)
    return ActorCritic(int(np.prod(envs.obs_shape)), int(np.prod(envs.action_shape)), args.hidden)


class Rollout:
    """What one iteration collects, [steps, environments, ...]."""
    obs_dtype = torch.float32

    def __init__(self, args, envs):
        rows = (args.steps, args.num_envs)
        self.obs, self.actions = torch.zeros(rows + envs.obs_shape, dtype=self.obs_dtype), torch.zeros(rows + envs.action_shape)
        self.logp, self.rewards, self.dones, self.values = (torch.zeros(rows) for _ in range(4))

    def collect(self, net, envs, obs, done):
        for t in range(len(self.obs)):
            self.obs[t], self.dones[t] = obs, done
            with torch.no_grad():
                self.actions[t], self.logp[t], _, self.values[t] = net(obs)
            obs, self.rewards[t], done = envs.step(self.actions[t].numpy())
        return obs, done

    @torch.no_grad()
    def advantages(self, net, obs, done):
        result, value, carried = torch.zeros_like(self.rewards), net.critic(obs).squeeze(1), 0.0
        for t in reversed(range(len(self.rewards))):
            goes_on = 1.0 - done
            delta = self.rewards[t] + GAMMA * value * goes_on - self.values[t]
            result[t] = carried = delta + GAMMA * GAE_LAMBDA * goes_on * carried
            value, done = self.values[t], self.dones[t]
        return result


def minibatch_loss(net, obs, action, old_logp, advantage, target, old_value):
    _, logp, entropy, value = net(obs, action)
    log_ratio = logp - old_logp
    ratio = log_ratio.exp()
    with torch.no_grad():
        diagnostics = ((ratio - 1) - log_ratio).mean(), ((ratio - 1).abs() > CLIP).float().mean()
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    policy_loss = torch.max(-advantage * ratio, -advantage * ratio.clamp(1 - CLIP, 1 + CLIP)).mean()
    clipped = old_value + (value - old_value).clamp(-CLIP, CLIP)
    value_loss = 0.5 * torch.max((value - target) ** 2, (clipped - target) ** 2).mean()
    return policy_loss + VALUE_COEF * value_loss - ENTROPY_COEF * entropy.mean(), diagnostics


def update(net, loss_of, optimizer, rollout, advantages, args):
    targets = advantages + rollout.values
    rows = [t.flatten(0, 1) for t in (rollout.obs, rollout.actions, rollout.logp, advantages, targets, rollout.values)]
    order, size = np.arange(len(rows[0])), len(rows[0]) // args.minibatches
    for _ in range(args.epochs):
        np.random.shuffle(order)
        for first in range(0, len(order), size):
            loss, (kl, clipped) = loss_of(net, *(t[order[first:first + size]] for t in rows))
            kl.item(), clipped.item()  # what a log would read
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), MAX_GRAD_NORM)
            optimizer.step()


def train(args, environments=Environments, network=vector_network, storage=Rollout):
    torch.set_num_threads(args.torch_threads)
    torch.manual_seed(args.seed)
    np.random.seed(args.seed)
    envs = environments(args)
    net = network(envs, args)
    acting, loss_of = net, minibatch_loss
    if args.compile:
        torch.distributions.Distribution.set_default_validate_args(False)
        acting, loss_of = torch.compile(net), torch.compile(minibatch_loss)
    optimizer = torch.optim.Adam(net.parameters(), lr=LEARNING_RATE, eps=1e-5)
    rollout, obs, done, begin = storage(args, envs), envs.reset(), torch.zeros(args.num_envs), None
    for i in range(args.iterations):
        if i == args.skip:
            begin = time.perf_counter()
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - i / args.iterations)
        obs, done = rollout.collect(acting, envs, obs, done)
        update(net, loss_of, optimizer, rollout, rollout.advantages(net, obs, done), args)
    wall = time.perf_counter() - begin
    mean_return = np.mean(envs.finished) if envs.finished else float("nan")
    print((args.iterations - args.skip) * args.num_envs * args.steps, f"{wall:.6f} {mean_return:.1f}", flush=True)
    envs.inner.close()


def versions():
    import gymnasium
    import mujoco
    from envpool_steps import envpool, linked_mujoco
    print(f"PyTorch {torch.__version__}, EnvPool {envpool.__version__} with MuJoCo {linked_mujoco()}, Gymnasium {gymnasium.__version__} with MuJoCo "
          f"{mujoco.__version__}, NumPy {np.__version__}")


def read_arguments(kinds, task, **numbers):
    parser = argparse.ArgumentParser()
    parser.add_argument("--envs", choices=kinds, default=kinds[0])
    parser.add_argument("--task", default=task)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--version", action="store_true")
    for name, value in {"iterations": 20, "skip": 2, "seed": 1, "torch_threads": 1, **numbers}.items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=value)
    args = parser.parse_args()
    if args.iterations <= args.skip:
        parser.error(f"--iterations {args.iterations} leaves nothing after the first {args.skip} (--skip)")
    return args


def main():
    args = read_arguments(["envpool", "gym-sync", "gym-async"], "HalfCheetah-v5", num_envs=64, steps=32, minibatches=32, epochs=10, hidden=64, env_threads=2)
    versions() if args.version else train(args)


if __name__ == "__main__":
    main()
