"""Environments in Gymnasium's form, without Gymnasium, for tests of the bridge."""
import os
import signal
import sys
import time

import numpy as np

from troupe_env.spaces import Box, Dict, Discrete


class Line:
    """Push a point to the middle of a line. `fault`: what happens once, at step `at` of an episode, to the process that
    finds the file `once`, which it removes: kill, hang, raise. `log`: a file that is told the seed and the process of
    each episode that begins."""
    max_steps = 20
    dt = 0.1

    def __init__(self, fault="", at=3, once="", log=""):
        self.observation_space = Box(-2, 2, (2,))
        self.action_space = Box(-1, 1, (1,))
        self._fault, self._at, self._once, self._log = fault, at, once, log

    def reset(self, seed=None):
        self._x = np.random.default_rng(seed).uniform(-1, 1)
        self._step = 0
        if self._log:
            with open(self._log, "a", encoding="ascii") as file:
                file.write(f"{seed} {os.getpid()}\n")
        return self._observation(), {}

    def expert(self, observation):
        return [-5 * observation[0]]

    def step(self, action):
        self._step += 1
        if self._fault and self._step == self._at:
            self._break()
        self._x = float(np.clip(self._x + 0.2 * action[0], -2, 2))
        solved = abs(self._x) < 0.1
        return self._observation(), -abs(self._x), False, False, {"is_success": solved, "distance": abs(self._x)}

    def _observation(self):
        return np.array([self._x, self._step / self.max_steps], np.float32)

    def _break(self):
        try:
            os.remove(self._once)
        except FileNotFoundError:
            return
        if self._fault == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self._fault == "hang":
            time.sleep(3600)
        raise ValueError("the line broke")


class CutLine(Line):
    """Cuts its episodes itself, at step 6."""

    def step(self, action):
        observation, reward, _, _, info = super().step(action)
        return observation, reward, False, self._step == 6, info


class NoExpert(Line):
    expert = None


class Everything:
    """One part of each kind that an observation may have; ends by itself at step 3, by truncation."""
    render_mode = "rgb_array"

    def __init__(self, colour=7):
        self.observation_space = Dict({
            "arm": Dict({"joints": Box(-np.inf, np.inf, (2, 2), np.float64)}),
            "mode": Discrete(3, start=1),
            "camera": Box(0, 255, (4, 6, 3), np.uint8),
            "channels_first": Box(0, 255, (3, 32, 20), np.uint8),
            "bytes": Box(0, 255, (5,), np.uint8),
        })
        self.action_space = Discrete(4, start=-1)
        self._colour = colour

    def reset(self, seed=None):
        self._seed, self._step = seed, 0
        return self._observation(0), {}

    def step(self, action):
        self._step += 1
        return self._observation(action), float(action), False, self._step == 3, {"flag": True, "word": "no number"}

    def render(self):
        return np.full((8, 8, 3), self._step, np.uint8)

    def _observation(self, action):
        picture = np.zeros((3, 32, 20), np.uint8)
        picture[2] = self._colour
        return {"arm": {"joints": np.array([[1, 2], [3, action]], np.float64)}, "mode": 1 + self._step % 3,
                "camera": np.full((4, 6, 3), self._seed % 256, np.uint8), "channels_first": picture,
                "bytes": np.arange(5, dtype=np.uint8)}


class Wild:
    """Does what no environment should: at a step, `how` says what."""
    made = closed = 0

    def __init__(self, how="", most=1 << 30):
        self.observation_space, self.action_space = Dict({"mode": Discrete(3)}), Box(-1, 1, (1,))
        self._how, self._step = how, 0
        if Wild.made >= most:
            sys.exit("no more of them")
        Wild.made += 1

    def reset(self, seed=None):
        self._step = 0
        return {"mode": 0}, {}

    def step(self, action):
        self._step += 1
        wild = self._step == 2
        if wild and self._how == "exit":
            sys.exit(3)
        if wild and self._how == "text":
            raise ValueError("\ud800" + "é" * 5000)
        info = {} if wild and self._how == "info" else {"distance": 1.0}
        return {"mode": 3 if wild and self._how == "choice" else 2}, 0.0, False, False, info

    def close(self):
        Wild.closed += 1


class Masked:
    """Allows the choices 1 and 2 in turn, and says so as PettingZoo's environments do."""

    def __init__(self):
        self.observation_space = Dict({"observation": Box(-1, 1, (2,)), "action_mask": Box(0, 1, (3,), np.int8)})
        self.action_space = Discrete(3)

    def reset(self, seed=None):
        self._step = 0
        return self._observation(), {}

    def step(self, action):
        if action != self._allowed():
            raise ValueError(f"{action} is not allowed")
        self._step += 1
        return self._observation(), 1.0, False, False, {}

    def _allowed(self):
        return 1 + self._step % 2

    def _observation(self):
        return {"observation": np.zeros(2, np.float32), "action_mask": np.eye(3, dtype=np.int8)[self._allowed()]}


class OldForm(Line):
    """Of the time before truncation."""

    def step(self, action):
        observation, reward, ended, _, info = super().step(action)
        return observation, reward, ended, info


class NoEnvironment:
    """Without reset and step."""
