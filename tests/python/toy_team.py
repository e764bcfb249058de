"""A module of PettingZoo's parallel form, without PettingZoo: agents walk along a line, and one that has passed 1 leaves.
`wide`: the last agent observes more than the others. `keeps`: agents that have ended stay on the list."""
import numpy as np
from troupe_env.spaces import Box


class parallel_env:  # noqa: N801 - as PettingZoo names it
    max_cycles = 12

    def __init__(self, walkers=3, wide=False, keeps=False):
        self.possible_agents = [f"walker_{i}" for i in range(walkers)]
        self.agents = []
        self._wide, self._keeps = wide, keeps

    @property
    def unwrapped(self):
        return self

    def observation_space(self, agent):
        return Box(-9, 9, (3 if self._wide and agent == self.possible_agents[-1] else 2,))

    def action_space(self, agent):
        return Box(-1, 1, (1,))

    def reset(self, seed=None, options=None):
        self.agents = list(self.possible_agents)
        self._step = 0
        self._at = dict(zip(self.agents, np.random.default_rng(seed).uniform(-0.5, 0.5, len(self.agents))))
        return self._observations(self.agents), {agent: {"late": 0.5} for agent in self.agents}

    def step(self, actions):
        if set(actions) != set(self.agents):
            raise ValueError(f"actions of {sorted(actions)}; {self.agents} are there")
        self._step += 1
        for agent, action in actions.items():
            self._at[agent] += float(action[0])
        gone = {agent: self._at[agent] > 1 for agent in self.agents}
        cut = {agent: self._step >= self.max_cycles and not gone[agent] for agent in self.agents}
        observations, there = self._observations(self.agents), self.agents
        if not self._keeps:
            self.agents = [agent for agent in there if not gone[agent] and not cut[agent]]
        return (observations, {agent: float(self._at[agent]) for agent in there}, gone, cut,
                {agent: {"late": float(self._step)} for agent in there})

    def render(self):
        return None

    def close(self):
        pass

    def _observations(self, agents):
        return {agent: np.array([self._at[agent], self._step], np.float32) for agent in agents}
