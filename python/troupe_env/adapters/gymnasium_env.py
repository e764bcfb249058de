"""gymnasium:ID, or gymnasium:MODULE:ID where importing MODULE registers ID."""
from ..said import Said, one_line
from . import need


def make(name, options):
    gymnasium = need("gymnasium", "gymnasium", f"gymnasium:{name}")
    module, _, env_id = name.rpartition(":")
    if module:
        need(module, module, f"gymnasium:{name}")
    try:
        env = gymnasium.make(env_id, disable_env_checker=True, **options)
    except gymnasium.error.Error as error:
        raise Said(f"gymnasium:{name}: {one_line(error)}") from error
    except ModuleNotFoundError as error:
        raise Said(f"gymnasium:{name} needs the Python package {error.name}; it is often an extra of Gymnasium "
                   "(pip install 'gymnasium[all]')") from error
    return _Checked(env)


class _Checked:
    """Gymnasium's environment without its time limit, which is Troupe's to enforce."""

    def __init__(self, env):
        self.env = env
        self.observation_space, self.action_space = env.observation_space, env.action_space
        self.max_steps = env.spec.max_episode_steps or 0 if env.spec is not None else 0
        self.reward_threshold = env.spec.reward_threshold if env.spec is not None else None
        # others mean the simulator's own step by it
        self.dt = getattr(env.unwrapped, "dt", None) if hasattr(env.unwrapped, "frame_skip") else None
        self.render_mode = env.render_mode
        self.reset, self.step, self.render, self.close = env.reset, env.step, env.render, env.close
        expert = getattr(env.unwrapped, "expert", None)
        if callable(expert):
            self.expert = expert
        layer = env
        while layer is not None and layer is not getattr(env, "unwrapped", env):
            if type(layer).__name__ == "TimeLimit":
                layer._max_episode_steps = 1 << 62
            layer = getattr(layer, "env", None)
