"""pettingzoo:MODULE, such as pettingzoo:mpe2.simple_spread_v3: the parallel_env() of a module in PettingZoo's form, whose
agents observe and act in one space each, the same for all."""
import importlib.util

from ..fields import Actions, fields_of
from ..said import Said
from . import need


def make(name, options):
    package = name.split(".")[0]
    need(package, package, f"pettingzoo:{name}")
    try:
        is_there = importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        is_there = False
    if not is_there:
        raise Said(f"pettingzoo:{name}: the package {package} has no module '{name}'")
    module = need(name, package, f"pettingzoo:{name}")
    if not hasattr(module, "parallel_env"):
        raise Said(f"pettingzoo:{name}: the module has no parallel_env; wanted an environment of PettingZoo's parallel form")
    return _Team(name, module.parallel_env(**options))


class _Team:
    """The agents in the order of possible_agents. One that has left the others has no observation any more."""

    def __init__(self, name, env):
        self._env = env
        self._names = list(env.possible_agents)
        if not self._names:
            raise Said(f"pettingzoo:{name}: possible_agents is empty; wanted the names of the agents")
        self.agents = len(self._names)
        first = self._names[0]
        self.observation_space, self.action_space = env.observation_space(first), env.action_space(first)
        form = self._form(first)
        for other in self._names[1:]:
            if self._form(other) != form:
                raise Said(f"pettingzoo:{name}: '{first}' and '{other}' observe or act in different spaces; one policy "
                           "acts for all agents, so wrap the environment in one that pads them (SuperSuit has such)")
        self.max_steps = int(getattr(getattr(env, "unwrapped", env), "max_cycles", 0) or 0)
        self.render_mode = getattr(env, "render_mode", None)
        self.render, self.close = env.render, env.close

    def _form(self, agent):
        fields = fields_of(self._env.observation_space(agent))
        return [field.description() for field in fields], Actions(self._env.action_space(agent)).description()

    def reset(self, seed=None):
        observations, infos = self._env.reset(seed=seed)
        return self._of_the_living(observations), infos.get(self._names[0], {})

    def step(self, actions):
        living = list(self._env.agents)
        chosen = {agent: action for agent, action in zip(self._names, actions) if agent in living}
        observations, rewards, terminations, truncations, infos = self._env.step(chosen)
        # one that says of every agent that it has ended need not take them off its list
        over = not self._env.agents or all(terminations[agent] or truncations[agent] for agent in living)
        terminated = over and all(terminations[agent] for agent in living)
        # the last observations of an episode are looked at where it was cut
        seen = [observations.get(agent) for agent in self._names] if over else self._of_the_living(observations)
        return (seen, [float(rewards.get(agent, 0)) for agent in self._names], terminated, over and not terminated,
                infos.get(living[0], {}) if living else {})

    def _of_the_living(self, observations):
        return [observations[agent] if agent in self._env.agents else None for agent in self._names]
