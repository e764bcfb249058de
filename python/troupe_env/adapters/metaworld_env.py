"""metaworld:TASK, such as metaworld:reach-v3: one task of Meta-World with its goal among what is observed."""
from ..said import Said
from . import need

# what the time limit becomes, so that Troupe keeps it
NEVER = 1 << 30


def make(name, options):
    metaworld = need("metaworld", "metaworld", f"metaworld:{name}")
    tasks = metaworld.ALL_V3_ENVIRONMENTS
    if name not in tasks:
        raise Said(f"metaworld:{name}: there is no such task; there are {', '.join(sorted(tasks))}")
    policies = need("metaworld.policies", "metaworld", f"metaworld:{name}").ENV_POLICY_MAP
    return _Task(tasks[name](**options), policies.get(name))


class _Task:
    def __init__(self, env, policy):
        self._env = env
        if policy is not None:
            self.expert = policy().get_action  # reads the observation alone
        # as its own MT1 does: goals differ from episode to episode, by the seed, and are observed
        env._partially_observable = False
        # step() clips observations to this cached space, which was made without the goal: drop it
        env.__dict__.pop("sawyer_observation_space", None)
        env._freeze_rand_vec = False
        env._set_task_called = True
        env.seeded_rand_vec = True
        self.max_steps, env.max_path_length = env.max_path_length, NEVER
        self.observation_space, self.action_space = env.sawyer_observation_space, env.action_space
        self.dt, self.render_mode = env.dt, env.render_mode
        self.step, self.render, self.close = env.step, env.render, env.close

    def reset(self, seed=None):
        self._env.seed(seed)
        return self._env.reset()
