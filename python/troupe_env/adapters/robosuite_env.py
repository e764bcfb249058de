"""robosuite:TASK, such as robosuite:Lift: observations robot0_proprio-state, object-state, and rgb.CAMERA where
env.options asks for cameras (use_camera_obs, camera_names, camera_heights, camera_widths)."""
import numpy as np

from ..said import Said
from ..spaces import Box, Dict
from . import need, robosuite_lift


def make(name, options):
    robosuite = need("robosuite", "robosuite", f"robosuite:{name}")
    if name not in robosuite.ALL_ENVIRONMENTS:
        raise Said(f"robosuite:{name}: there is no such task; there are {', '.join(sorted(robosuite.ALL_ENVIRONMENTS))}")
    cameras = bool(options.get("use_camera_obs", False))
    horizon = int(options.get("horizon", 1000))
    arguments = {"robots": "Panda", "has_renderer": False, "has_offscreen_renderer": cameras, "use_camera_obs": cameras}
    task = _Task(robosuite.make(name, **{**arguments, **options, "ignore_done": True}), horizon)
    # the package has no scripted policies; ours reads vectors of one robot under its default controller
    if name == "Lift" and not {"robots", "controller_configs", "gripper_types", "use_object_obs"} & set(options):
        task.expert = robosuite_lift.expert
    return task


class _Task:
    def __init__(self, env, max_steps):
        self._env = env
        self.max_steps, self.dt = max_steps, env.control_timestep
        low, high = env.action_spec
        self.action_space = Box(low, high, dtype=np.float32)
        self.observation_space = Dict({key: self._space(value) for key, value in self._kept(env.reset()).items()})
        self.close = env.close

    @staticmethod
    def _space(value):
        return Box(0, 255, value.shape, np.uint8) if value.dtype == np.uint8 else Box(-np.inf, np.inf, value.shape)

    @staticmethod
    def _kept(observation):
        """The vectors that hold all others, and pictures, which OpenGL gives upside down."""
        kept = {}
        for key, value in observation.items():
            if key.endswith("-state"):
                kept[key] = value
            elif key.endswith("_image"):
                kept["rgb." + key[:-len("_image")]] = value[::-1]
        return kept

    def reset(self, seed=None):
        # reset() takes no seed: everything that draws is given a generator of it
        np.random.seed(seed)
        self._env.rng = np.random.default_rng(seed)
        placement = getattr(self._env, "placement_initializer", None)
        for sampler in (placement, *getattr(placement, "samplers", {}).values()):
            if sampler is not None:
                sampler.rng = self._env.rng
        return self._kept(self._env.reset()), {}

    def step(self, action):
        observation, reward, _, info = self._env.step(action)
        return self._kept(observation), reward, False, False, {**info, "success": bool(self._env._check_success())}
