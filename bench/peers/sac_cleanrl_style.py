"""SAC for continuous control as CleanRL publishes it, in one file of PyTorch over a Gymnasium environment: the peer of sac_bench.sh, and one of loop_bench.sh.

    sac_cleanrl_style.py [--task HalfCheetah-v5] [--hidden 256] [--steps 100000] [--learning-starts 5000] [--torch-threads 1] [--seed 1]
                         [--eval-episodes 10]
    sac_cleanrl_style.py --products [--seconds 3] [--torch-threads 1]

Losses and cadence follow Haarnoja et al. (arXiv 1801.01290, and the learned temperature of 1812.05905): squashed Gaussian actor, two Q networks and
their moving averages, 2xHIDDEN ReLU, Adam, batch 256, one update of critics, actor and temperature a step. Numbers are those of the recipe
rl_halfcheetah_sac. Rates of learning: actor 3e-4, critics and temperature 1e-3.

Prints "updates seconds mean_return": from the first update to the last, environment steps included; the return is of EVAL_EPISODES further episodes
with the mean action. --products prints "updates seconds" of the bare matrix products of an update: its forward and backward passes without anything
between them. --version prints what it runs on.
"""
import argparse
import functools
import math
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

GAMMA, TAU, ACTOR_RATE, CRITIC_RATE, LOG_STD_MIN, LOG_STD_MAX, BATCH = 0.99, 0.005, 3e-4, 1e-3, -5.0, 2.0, 256


class Replay:
    """Transitions in arrays that are made once."""

    def __init__(self, capacity, obs_size, action_size):
        self.obs, self.next_obs = (np.zeros((capacity, obs_size), np.float32) for _ in range(2))
        self.actions = np.zeros((capacity, action_size), np.float32)
        self.rewards, self.goes_on = np.zeros((capacity, 1), np.float32), np.zeros((capacity, 1), np.float32)
        self.size = 0

    def add(self, obs, action, reward, next_obs, terminated):
        i = self.size
        self.obs[i], self.actions[i], self.rewards[i], self.next_obs[i], self.goes_on[i] = obs, action, reward, next_obs, 1 - terminated
        self.size += 1

    def draw(self):
        rows = np.random.randint(0, self.size, BATCH)
        return tuple(torch.from_numpy(array[rows]) for array in (self.obs, self.actions, self.rewards, self.next_obs, self.goes_on))


class Q(nn.Module):
    def __init__(self, obs_size, action_size, hidden):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(obs_size + action_size, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, obs, action):
        return self.net(torch.cat([obs, action], 1))


class Actor(nn.Module):
    def __init__(self, obs_size, space, hidden):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(obs_size, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.mean, self.log_std = nn.Linear(hidden, space.shape[0]), nn.Linear(hidden, space.shape[0])
        self.register_buffer("scale", torch.tensor((space.high - space.low) / 2, dtype=torch.float32))
        self.register_buffer("middle", torch.tensor((space.high + space.low) / 2, dtype=torch.float32))

    def forward(self, obs):
        hidden = self.body(obs)
        spread = torch.tanh(self.log_std(hidden))
        return self.mean(hidden), LOG_STD_MIN + 0.5 * (LOG_STD_MAX - LOG_STD_MIN) * (spread + 1)

    def sample(self, obs):
        """An action and its log-probability; log(1 - tanh(x)^2) in a form that large x do not spoil."""
        mean, log_std = self(obs)
        noise = torch.randn_like(mean)
        raw = mean + log_std.exp() * noise
        gaussian = -0.5 * noise**2 - log_std - 0.5 * math.log(2 * math.pi)
        squashed = 2 * (math.log(2) - raw - F.softplus(-2 * raw)) + self.scale.log()
        return torch.tanh(raw) * self.scale + self.middle, (gaussian - squashed).sum(1, keepdim=True)

    @torch.no_grad()
    def mean_action(self, obs):
        return torch.tanh(self(obs)[0]) * self.scale + self.middle


class Agent:
    def __init__(self, obs_size, space, hidden):
        self.actor = Actor(obs_size, space, hidden)
        self.q = [Q(obs_size, space.shape[0], hidden) for _ in range(2)]
        self.target = [Q(obs_size, space.shape[0], hidden) for _ in range(2)]
        for target, online in zip(self.target, self.q):
            target.load_state_dict(online.state_dict())
        self.log_alpha = torch.zeros(1, requires_grad=True)
        self.wanted_entropy = -float(space.shape[0])
        self.q_parameters = [p for q in self.q for p in q.parameters()]
        self.target_parameters = [p for q in self.target for p in q.parameters()]
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), lr=ACTOR_RATE)
        self.q_optimizer = torch.optim.Adam(self.q_parameters, lr=CRITIC_RATE)
        self.alpha_optimizer = torch.optim.Adam([self.log_alpha], lr=CRITIC_RATE)

    def update(self, obs, action, reward, next_obs, goes_on):
        alpha = self.log_alpha.exp().item()
        with torch.no_grad():
            next_action, next_logp = self.actor.sample(next_obs)
            next_value = torch.min(*(q(next_obs, next_action) for q in self.target)) - alpha * next_logp
            wanted = reward + GAMMA * goes_on * next_value
        q_loss = sum(F.mse_loss(q(obs, action), wanted) for q in self.q)
        self.q_optimizer.zero_grad()
        q_loss.backward()
        self.q_optimizer.step()

        drawn, logp = self.actor.sample(obs)
        actor_loss = (alpha * logp - torch.min(*(q(obs, drawn) for q in self.q))).mean()
        self.actor_optimizer.zero_grad()
        actor_loss.backward()
        self.actor_optimizer.step()

        alpha_loss = (-self.log_alpha.exp() * (logp.detach() + self.wanted_entropy)).mean()
        self.alpha_optimizer.zero_grad()
        alpha_loss.backward()
        self.alpha_optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(self.target_parameters, self.q_parameters, TAU)


def evaluate(agent, args):
    import gymnasium
    env, returns = gymnasium.make(args.task), []
    for episode in range(args.eval_episodes):
        obs, _ = env.reset(seed=1_000_000 + episode)
        total, done = 0.0, False
        while not done:
            action = agent.actor.mean_action(torch.from_numpy(obs.astype(np.float32))[None])[0].numpy()
            obs, reward, terminated, truncated, _ = env.step(action)
            total, done = total + reward, terminated or truncated
        returns.append(total)
    return np.mean(returns) if returns else float("nan")


def train(args):
    import gymnasium
    torch.manual_seed(args.seed)
    np.random.seed(args.seed)
    env = gymnasium.make(args.task)
    env.action_space.seed(args.seed)
    obs_size = env.observation_space.shape[0]
    agent, replay = Agent(obs_size, env.action_space, args.hidden), Replay(args.steps, obs_size, env.action_space.shape[0])
    obs, _ = env.reset(seed=args.seed)
    updates, begin = 0, None
    for step in range(args.steps):
        if step < args.learning_starts:
            action = env.action_space.sample()
        else:
            with torch.no_grad():
                action = agent.actor.sample(torch.from_numpy(obs.astype(np.float32))[None])[0][0].numpy()
        next_obs, reward, terminated, truncated, _ = env.step(action)
        replay.add(obs, action, reward, next_obs, terminated)
        obs = env.reset()[0] if terminated or truncated else next_obs
        if step < args.learning_starts:
            continue
        if begin is None:
            begin = time.perf_counter()
        agent.update(*replay.draw())
        updates += 1
    seconds = time.perf_counter() - begin
    print(updates, f"{seconds:.6f} {evaluate(agent, args):.1f}", flush=True)


def products_of(hidden, inputs, outputs, gradients_of_inputs, gradients_of_weights):
    """Operands of a 2xHIDDEN network's products in one forward, and in one backward as far as it is wanted."""
    widths, pairs = [inputs, hidden, hidden, outputs], []
    for layer, (a, b) in enumerate(zip(widths, widths[1:])):
        x, w, dy = torch.randn(BATCH, a), torch.randn(a, b), torch.randn(BATCH, b)
        pairs.append((x, w))
        if gradients_of_weights:
            pairs.append((x.t(), dy))
        if gradients_of_inputs == "all" or (gradients_of_inputs == "inner" and layer > 0):
            pairs.append((dy, w.t()))
    return pairs


def time_products(args):
    """HalfCheetah's sizes. Critics: both targets and the actor at the next state without gradients; both Q networks with those of their weights. Actor:
    its own forward and backward through both Q networks, whose weights need none."""
    obs, action, products = 17, 6, functools.partial(products_of, args.hidden)
    pairs = products(obs, 2 * action, "none", False)
    for _ in range(2):
        pairs += products(obs + action, 1, "none", False) + products(obs + action, 1, "inner", True)
    pairs += products(obs, 2 * action, "inner", True)
    for _ in range(2):
        pairs += products(obs + action, 1, "all", False)
    work = [(a, b, torch.empty(a.shape[0], b.shape[1])) for a, b in pairs]
    updates, begin = 0, None
    while True:
        for a, b, out in work:
            torch.mm(a, b, out=out)
        if begin is None:  # the first one makes the library's threads
            begin = time.perf_counter()
            continue
        updates += 1
        seconds = time.perf_counter() - begin
        if seconds >= args.seconds:
            print(updates, f"{seconds:.6f}")
            return


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--task", default="HalfCheetah-v5")
    parser.add_argument("--products", action="store_true")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--version", action="store_true")
    for name, value in {"hidden": 256, "steps": 100_000, "learning-starts": 5000, "seed": 1, "torch-threads": 1, "eval-episodes": 10}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    args = parser.parse_args()
    if args.steps <= args.learning_starts:
        parser.error(f"--steps {args.steps} leaves no update after the first {args.learning_starts} (--learning-starts)")
    torch.set_num_threads(args.torch_threads)
    if args.version:
        import gymnasium
        import mujoco
        print(f"PyTorch {torch.__version__}, Gymnasium {gymnasium.__version__} with MuJoCo {mujoco.__version__}, NumPy {np.__version__}")
    elif args.products:
        with torch.no_grad():
            time_products(args)
    else:
        train(args)


if __name__ == "__main__":
    main()
