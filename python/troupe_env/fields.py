"""What Troupe keeps of an observation, and what it makes of an action: flat fields by name, a vector or a choice."""
from collections.abc import Mapping

import numpy as np

from .said import Said

MOST_CHANNELS = 16
UNBOUNDED = 3.4e38  # what environments write for "no bound" in f32


def number(value):
    """As the description's JSON has it: infinite numbers are words."""
    value = float(value)
    if np.isnan(value):
        return "nan"
    if abs(value) >= UNBOUNDED:
        return "inf" if value > 0 else "-inf"
    return value


def _picture(space):
    """How an array of bytes becomes height, width, channels: None, "hwc", "chw" or "hw"."""
    shape = space.shape
    if np.dtype(space.dtype) != np.uint8:
        return None
    if len(shape) == 3 and shape[2] <= MOST_CHANNELS and shape[2] <= shape[0]:
        return "hwc"
    if len(shape) == 3 and shape[0] <= MOST_CHANNELS:
        return "chw"
    return "hw" if len(shape) == 2 and min(shape) > MOST_CHANNELS else None


class Field:
    """One array of the observation. `path`: the keys that lead to it."""

    def __init__(self, path, space, dtype):
        self.path = path
        self.name = ".".join(path) or "state"
        self._offsets = None
        self._layout = None
        if hasattr(space, "nvec") or self._is_choice(space):
            counts = np.asarray(getattr(space, "nvec", getattr(space, "n", None))).ravel()
            self._starts = np.asarray(getattr(space, "start", 0)).ravel()
            self._counts = counts
            self._offsets = np.concatenate([[0], np.cumsum(counts)[:-1]])
            self.dtype, self.shape, self.low, self.high = dtype, (int(counts.sum()),), 0.0, 1.0
            return
        if not hasattr(space, "dtype") or getattr(space, "shape", None) is None:
            raise Said(f"the observation '{self.name}' is a {type(space).__name__}; Troupe takes Box, Discrete, "
                       "MultiDiscrete, MultiBinary and Dict or Tuple of them: wrap the environment")
        self._layout = _picture(space)
        if self._layout is not None:
            name = self.name if path else "observation"
            self.name = name if name.startswith("rgb.") else "rgb." + name
            height, width, channels = {"hwc": (0, 1, 2), "chw": (1, 2, 0), "hw": (0, 1, None)}[self._layout]
            self.shape = (space.shape[height], space.shape[width], 1 if channels is None else space.shape[channels])
            self.dtype, self.low, self.high = np.dtype(np.uint8), 0.0, 255.0
            return
        self.dtype = np.dtype(np.float32) if np.dtype(space.dtype).itemsize < 4 else dtype
        self.shape = (int(np.prod(space.shape)),)
        if self.shape[0] == 0:
            raise Said(f"the observation '{self.name}' is an array of shape {tuple(space.shape)}, without a number; wrap "
                       "the environment")
        self.low = float(np.min(space.low)) if hasattr(space, "low") else 0.0
        self.high = float(np.max(space.high)) if hasattr(space, "high") else 1.0

    @staticmethod
    def _is_choice(space):
        return hasattr(space, "n") and tuple(getattr(space, "shape", ())) == ()

    def write(self, out, observation):
        """Puts what is at `path` of an observation into `out`, this field of one row."""
        value = observation
        for key in self.path:
            value = value[int(key) if isinstance(value, (tuple, list)) else key]
        if self._offsets is not None:
            chosen = np.asarray(value).ravel() - self._starts
            if chosen.shape != self._counts.shape or np.any(chosen < 0) or np.any(chosen >= self._counts):
                raise ValueError(f"the observation '{self.name}' is {np.asarray(value).tolist()}; its space has "
                                 f"{self._counts.tolist()} choices from {self._starts.tolist()} on")
            out[...] = 0
            out[self._offsets + chosen] = 1
        elif self._layout == "chw":
            out[...] = np.moveaxis(np.asarray(value), 0, -1)
        else:
            value = np.asarray(value)
            out[...] = value if value.shape == self.shape else value.reshape(self.shape)

    def is_action_mask(self, choices):
        """Whether it is the part "action_mask" that says which of so many choices are allowed, as PettingZoo names it."""
        return choices > 0 and self.path[-1:] == ("action_mask",) and self.shape == (choices,)

    def description(self):
        kind = {"uint8": "u8", "float32": "f32", "float64": "f64"}[self.dtype.name]
        return {"name": self.name, "dtype": kind, "shape": list(self.shape), "low": number(self.low),
                "high": number(self.high), "unit": ""}


def fields_of(space, dtype=np.float32):
    """The fields of an observation space, by name: vectors as `dtype` (f32 or f64), pictures as bytes of height, width,
    channels. Raises Said where there is nothing that a policy could be trained on."""
    found = []

    def walk(path, part):
        inner = getattr(part, "spaces", None)
        if isinstance(inner, Mapping):
            for key in inner:
                walk(path + (str(key),), inner[key])
        elif inner is not None:
            for index, one in enumerate(inner):
                walk(path + (str(index),), one)
        else:
            found.append(Field(path, part, np.dtype(dtype)))

    walk((), space)
    if len(found) == 1 and found[0].name == "observation":
        found[0].name = "state"
    names = [field.name for field in found]
    if len(set(names)) < len(names):
        raise Said(f"two parts of the observation have one name: {', '.join(sorted(names))}")
    return sorted(found, key=lambda field: field.name)


class Actions:
    """Troupe's actions, f32 vectors or an index, as the environment takes them."""

    def __init__(self, space):
        self.choices = 0
        if Field._is_choice(space):
            self.choices, self._start = int(space.n), int(getattr(space, "start", 0))
            self.size, self.low, self.high = 1, [], []
            return
        if not hasattr(space, "low") or np.dtype(space.dtype).kind != "f":
            raise Said(f"its action is a {type(space).__name__}; Troupe takes Box of floating point and Discrete: "
                       "wrap the environment")
        self._shape, self._dtype = space.shape, np.dtype(space.dtype)
        self.low = np.asarray(space.low, np.float32).ravel().tolist()
        self.high = np.asarray(space.high, np.float32).ravel().tolist()
        self.size = len(self.low)
        if self.size == 0:
            raise Said(f"its action is a Box of shape {tuple(space.shape)}, without a number; wrap the environment")

    def to_env(self, actions):
        """Of each row of f32 [rows, size]; none is a view of it."""
        if self.choices:
            return [self._start + int(choice) for choice in actions[:, 0]]
        return actions.reshape(len(actions), *self._shape).astype(self._dtype)

    def from_env(self, action):
        """As Troupe has it, f32 [size]."""
        if self.choices:
            return np.array([int(action) - self._start], np.float32)
        return np.asarray(action, np.float32).reshape(self.size)

    def some(self):
        """An action that is allowed: the middle of the bounds, or the first choice."""
        if self.choices:
            return np.zeros(1, np.float32)
        low, high = np.maximum(self.low, -1e6), np.minimum(self.high, 1e6)
        return ((low + high) / 2).astype(np.float32)

    def description(self):
        return {"choices": self.choices, "size": self.size, "low": [number(x) for x in self.low],
                "high": [number(x) for x in self.high], "unit": ""}
