"""Environments of one kind in one process: what a worker steps, and what describes itself."""
import json
import sys

import numpy as np

from . import adapters
from .fields import Actions, fields_of, number
from .said import Said, one_line, what_failed
from .shared import Shared

SUCCESS_KEYS = ("is_success", "success")
# settings of Troupe's own among env.options; all others are the environment's keyword arguments
OWN_OPTIONS = ("obs_dtype", "success")
# whatever an environment raises: one that ends the program by sys.exit() has failed as well
FAILURES = (Exception, SystemExit)


def read_options(text):
    """(keyword arguments, Troupe's own settings) of env.options as JSON: texts that are JSON are taken as it."""
    keywords, own = {}, {}
    for name, value in json.loads(text or "{}").items():
        try:
            parsed = json.loads(value)
        except (TypeError, ValueError):
            parsed = value
        (own if name in OWN_OPTIONS else keywords)[name] = parsed
    if own.get("obs_dtype", "f32") not in ("f32", "f64"):
        raise Said(f"env.options.obs_dtype is '{own['obs_dtype']}'; wanted f32 or f64")
    return keywords, own


class Kind:
    """One kind of environment: makes instances, and knows what they observe and take."""

    def __init__(self, env_id, options):
        self.env_id = env_id
        self.keywords, own = read_options(options)
        self.success_key = own.get("success")
        self._said_unseen = False
        first = self.make()
        self._first = first
        # of several agents: lists of observations, actions and rewards, one for each
        agents = getattr(first, "agents", None)
        self.is_team = isinstance(agents, int) and not isinstance(agents, bool)
        self.agents = agents if self.is_team else 1
        if self.agents < 1:
            raise Said(f"{env_id}: agents is {self.agents}; wanted 1 or more")
        self.fields = fields_of(first.observation_space, {"f32": "f4", "f64": "f8"}[own.get("obs_dtype", "f32")])
        self.actions = Actions(first.action_space)
        self.mask = next((field for field in self.fields if field.is_action_mask(self.actions.choices)), None)
        self._probe(first)

    def make(self):
        try:
            return adapters.make(self.env_id, self.keywords)
        except TypeError as error:
            # what Python says of a keyword that nobody takes
            if "argument" in str(error):
                raise Said(f"{self.env_id} with env.options {self.keywords}: {one_line(error)}") from error
            raise

    def say_unseen(self):
        """Once: an episode went by without a word on success."""
        if not self._said_unseen:
            print(f"{self.env_id}: a whole episode's info had no '{self.success_key}'; success counts as 0 there "
                  "(env.options.success names the key)", file=sys.stderr, flush=True)
        self._said_unseen = True

    def take(self):
        """An instance: the one that told what the kind is, or a new one."""
        env, self._first = self._first or self.make(), None
        return env

    def _probe(self, env):
        """One step says what `info` holds."""
        begun = env.reset(seed=0)
        if not isinstance(begun, tuple) or len(begun) != 2:
            raise Said(f"{self.env_id}: reset returns a {type(begun).__name__}; wanted (observation, info)")
        stepped = env.step([self._some(seen) for seen in begun[0]] if self.is_team else self._some(begun[0]))
        if not isinstance(stepped, tuple) or len(stepped) != 5:
            raise Said(f"{self.env_id}: step returns {len(stepped) if isinstance(stepped, tuple) else 'no tuple of'} "
                       "values; wanted (observation, reward, terminated, truncated, info)")
        info = stepped[4]
        if self.success_key is None:
            self.success_key = next((key for key in SUCCESS_KEYS if key in info), None)
        plain = (bool, int, float, np.bool_, np.number)
        self.info = sorted(key for key, value in info.items()
                           if isinstance(value, plain) and key != self.success_key and "." not in key)

    def _some(self, observation):
        """An action that is allowed at this observation."""
        action = self.actions.some()
        if self.mask is not None:
            allowed = np.zeros(self.mask.shape, self.mask.dtype)
            self.mask.write(allowed, observation)
            action[0] = np.argmax(allowed)
        return self.actions.to_env(action[None])[0]

    def description(self):
        """EnvSpec, as docs/env.md has it in JSON."""
        env = self._first
        dt = getattr(env, "dt", None)
        threshold = getattr(env, "reward_threshold", None)
        return {"version": 1,
                "id": self.env_id,
                "observation": [{**field.description(), **({"reader": "action_mask"} if field is self.mask else {})}
                                for field in self.fields],
                "action": self.actions.description(),
                "info": self.info,
                "has_success": self.success_key is not None,
                "observes_on_demand": False,
                "max_steps": int(getattr(env, "max_steps", 0) or 0),
                "control_hz": 1 / float(dt) if dt and np.isfinite(dt) else 0.0,
                "frame_skip": 1,
                "reward_threshold": "nan" if threshold is None else number(threshold),
                "cameras": ["render"] if getattr(env, "render_mode", None) == "rgb_array" else [],
                **({"agents": self.agents} if self.agents > 1 else {})}


class Rows:
    """Environments of one lease, row by row. What a row raises costs that row alone: it is made anew at its reset."""

    def __init__(self, kind, count):
        self.kind = kind
        self.envs = []
        # per row, of the episode: None, no step yet; else whether info has told success
        self._told = [None] * count
        # per row, as the environment gave it; for its expert
        self._seen = [None] * count
        self._shared = None
        # where the arrays of the question at hand lie; None: in messages
        self._arrays = None
        try:
            while len(self.envs) < count:
                self.envs.append(kind.take())
        except BaseException:
            self.close()
            raise

    def share(self, size, nonce, offered):
        """Makes memory for arrays (shared.py); questions that mean it have a count of rows in their place. Returns this
        process's descriptor of it."""
        count, self._arrays = len(self.envs), None
        out, alive = self._observations(count)
        wanted = {"rows": np.empty(count, "i4"), "seeds": np.empty(count, "u8"),
                  "actions": np.empty(self._by_agent(count, self.kind.actions.size), "f4"),
                  **{"obs." + name: array for name, array in self._as_sent(out).items()}, **self._outcomes(count),
                  **({"alive": alive} if self.kind.agents > 1 else {})}
        shared = Shared(size, nonce, offered, wanted)
        if self._shared is not None:
            self._shared.close()
        self._shared = shared
        return shared.fd

    def asked(self, question, name):
        """Rows and the array `name` of a question; its answer goes where they are."""
        self._arrays = None
        if "count" not in question:
            return question["rows"], question[name]
        count = question["count"]
        if self._shared is None or not 0 <= count <= len(self.envs):
            raise ValueError(f"{count} rows in memory, of {len(self.envs)}")
        self._arrays = self._shared.arrays
        return self._arrays["rows"][:count], self._arrays[name][:count]

    def _by_agent(self, *shape):
        """[rows, ...], or [rows, agents, ...] where there are several."""
        return shape[:1] + ((self.kind.agents,) if self.kind.agents > 1 else ()) + shape[1:]

    def _as_sent(self, out):
        return {name: array.reshape(self._by_agent(len(array), *array.shape[2:])) for name, array in out.items()}

    def _observations(self, count):
        """{field: [rows, agents, ...]}, and who is alive, [rows, agents]."""
        shapes = {field.name: (count, self.kind.agents, *field.shape) for field in self.kind.fields}
        if self._arrays is None:
            return ({field.name: np.zeros(shapes[field.name], field.dtype) for field in self.kind.fields},
                    np.zeros((count, self.kind.agents), np.uint8))
        return ({name: self._arrays["obs." + name][:count].reshape(shape) for name, shape in shapes.items()},
                self._arrays["alive"][:count] if self.kind.agents > 1 else np.zeros((count, 1), np.uint8))

    def _outcomes(self, count):
        """What a step gives beside the observation."""
        names = ("reward", "terminated", "truncated", "success", "info")
        if self._arrays is not None:
            return {name: self._arrays[name][:count] for name in names}
        shapes = (self._by_agent(count), (count,), (count,), (count,), (count, len(self.kind.info)))
        return {name: np.zeros(shape, dtype) for name, shape, dtype in zip(names, shapes, ("f8", "u1", "u1", "u1", "f8"))}

    def _answer(self, observations, outcomes, errors):
        out, alive = observations
        if self._arrays is not None:
            return {"count": len(alive), "errors": errors}
        return {"obs": self._as_sent(out), **outcomes, "errors": errors,
                **({"alive": alive} if self.kind.agents > 1 else {})}

    def _observe(self, observations, at, observation):
        out, alive = observations
        each = observation if self.kind.is_team else [observation]
        if len(each) != self.kind.agents:
            raise ValueError(f"{len(each)} observations; there are {self.kind.agents} agents")
        for agent, one in enumerate(each):
            # None: it has left the others
            alive[at, agent] = 0 if one is None and self.kind.is_team else 1
            for field in self.kind.fields:
                if alive[at, agent]:
                    field.write(out[field.name][at, agent], one)
                else:
                    out[field.name][at, agent] = 0

    def _lose(self, row, error, errors, at, observations, outcomes):
        """What the answer has of the row is zero."""
        env, self.envs[row] = self.envs[row], None
        errors.append([row, what_failed(error)])
        self._told[row] = None
        out, alive = observations
        for array in (*out.values(), alive, *outcomes.values()):
            array[at] = 0
        try:
            if env is not None and hasattr(env, "close"):
                env.close()
        except FAILURES:  # noqa: BLE001 - it is thrown away
            pass

    def reset(self, rows, seeds):
        """Begins an episode in each of `rows`."""
        observations, errors = self._observations(len(rows)), []
        for at, (row, seed) in enumerate(zip(rows.tolist(), seeds.tolist())):
            try:
                if self.envs[row] is None:
                    self.envs[row] = self.kind.make()
                observation = self._seen[row] = self.envs[row].reset(seed=seed & 0x7FFFFFFF)[0]
                self._observe(observations, at, observation)
                if self._told[row] is False:
                    self.kind.say_unseen()
                self._told[row] = None
            except FAILURES as error:
                self._lose(row, error, errors, at, observations, {})
        return self._answer(observations, {}, errors)

    def step(self, rows, actions):
        """One control step of each of `rows`; actions f32 [rows, size], or [rows, agents, size]. Nothing resets by
        itself."""
        count, kind = len(rows), self.kind
        observations, outcomes, errors = self._observations(count), self._outcomes(count), []
        _, terminated, truncated, success, info_values = outcomes.values()
        rewards = outcomes["reward"].reshape(count, kind.agents)
        taken = kind.actions.to_env(actions.reshape(count * kind.agents, kind.actions.size))
        for at, row in enumerate(rows.tolist()):
            try:
                env = self.envs[row]
                if env is None:
                    raise RuntimeError("a step before the reset")
                action = list(taken[at * kind.agents:(at + 1) * kind.agents]) if kind.is_team else taken[at]
                observation, reward, terminated[at], truncated[at], info = env.step(action)
                self._seen[row] = observation
                self._observe(observations, at, observation)
                rewards[at] = reward
                if kind.success_key is not None:
                    success[at] = bool(info.get(kind.success_key, False))
                    self._told[row] = bool(self._told[row]) or kind.success_key in info
                if kind.info:
                    info_values[at] = [info.get(name, np.nan) for name in kind.info]
            except FAILURES as error:
                self._lose(row, error, errors, at, observations, outcomes)
        return self._answer(observations, outcomes, errors)

    def expert(self, row):
        """What the environment's own expert does now, as Troupe has actions; None: it has none, as teams have."""
        expert = None if self.kind.is_team else getattr(self.envs[row], "expert", None)
        return None if expert is None else self.kind.actions.from_env(expert(self._seen[row]))

    def render(self, row, width, height):
        """RGB bytes of one row's picture, [height, width, 3], by the nearest pixel."""
        picture = np.asarray(self.envs[row].render(), np.uint8)
        down = (np.arange(height) * picture.shape[0]) // height
        right = (np.arange(width) * picture.shape[1]) // width
        return np.ascontiguousarray(picture[down][:, right, :3])

    def close(self):
        if self._shared is not None:
            self._shared.close()
        for env in self.envs:
            try:
                if env is not None and hasattr(env, "close"):
                    env.close()
            except FAILURES:  # noqa: BLE001 - it is thrown away
                pass
