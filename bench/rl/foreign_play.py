"""Environments in Python without a policy, through the adapters of python/troupe_env. Exit status 1 where a check fails.
    foreign_play.py steps ENV_ID [NAME=VALUE]... : 1,000 uniform actions, twice from the same seeds; everything observed is
        finite, pictures hold more than 100 colours, and both passes agree to the bit
    foreign_play.py replay DATASET : plays the actions of a recording (`troupe record`) from the seeds of its episodes;
        every row of observation.state and next.success comes back as it was written"""
import json
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from troupe_env import adapters  # noqa: E402
from troupe_env.fields import fields_of  # noqa: E402
from troupe_env.host import read_options  # noqa: E402

MASK = (1 << 64) - 1


def mix64(x):
    """base/hash.h"""
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def episode_seed(seed, env, episode):
    """env/episode_seed.h, of which a Python environment is given the low 31 bits"""
    h = mix64(seed + 0x9E3779B97F4A7C15 & MASK)
    h = mix64(h ^ (env + 0xD1B54A32D192ED03 & MASK))
    return mix64(h ^ (episode * 0x9E3779B97F4A7C15 + 1 & MASK)) & 0x7FFFFFFF


def observed(env, observation):
    """{field: array} as Troupe has them"""
    arrays = {}
    for field in fields_of(env.observation_space):
        arrays[field.name] = np.empty(field.shape, field.dtype)
        field.write(arrays[field.name], observation)
    return arrays


def steps(env_id, options, count=1000):
    env = adapters.make(env_id, options)

    def play():
        draws, episode, seen, over, length = np.random.default_rng(1), 0, [], True, 0
        for _ in range(count):
            if over:
                env.reset(seed=episode)
                episode, over, length = episode + 1, False, 0
            action = draws.uniform(env.action_space.low, env.action_space.high).astype(env.action_space.dtype)
            observation, reward, terminated, truncated, info = env.step(action)
            length += 1
            over = terminated or truncated or length == env.max_steps
            seen.append((observed(env, observation), float(reward)))
        return seen, episode

    first, episodes = play()
    second, _ = play()
    failures = []
    for name in first[0][0]:
        values = np.stack([observation[name] for observation, _ in first])
        again = np.stack([observation[name] for observation, _ in second])
        colours = ""
        if values.dtype == np.uint8:
            number = len(np.unique(values.reshape(-1, values.shape[-1]), axis=0))
            colours = f", {number:,} colours"
            if number <= 100:
                failures.append(f"{name} has {number} colours")
        if not np.isfinite(values).all():
            failures.append(f"{name} is not finite")
        if values.tobytes() != again.tobytes():
            failures.append(f"{name} differs between passes from the same seeds")
        print(f"  {name}: {values.dtype} {list(values.shape[1:])}{colours}")
    rewards = [np.array([reward for _, reward in seen]) for seen in (first, second)]
    if not np.isfinite(rewards[0]).all() or rewards[0].tobytes() != rewards[1].tobytes():
        failures.append("rewards are not finite, or differ between passes")
    print(f"  {env_id}: {count:,} steps in {episodes} episodes, twice; {'; '.join(failures) or 'the same bits'}")
    return not failures


def replay(folder):
    import pyarrow.parquet as parquet
    folder = pathlib.Path(folder)
    made = json.loads((folder / "meta/recording.json").read_text())
    columns = parquet.read_table(sorted(folder.glob("data/*/*.parquet"))).to_pydict()
    env = adapters.make(made["env"], read_options(json.dumps(made["options"]))[0])
    rows = differing = solved = 0
    for index, number in enumerate(made["tries"]):
        here = [row for row, episode in enumerate(columns["episode_index"]) if episode == index]
        observation, _ = env.reset(seed=episode_seed(made["seed"], -1, number))
        for row in here:
            state = np.concatenate([value.ravel() for value in observed(env, observation).values()])
            observation, _, _, _, info = env.step(np.array(columns["action"][row], np.float32))
            same = np.array_equal(state.astype(np.float32), np.array(columns["observation.state"][row], np.float32))
            rows, differing = rows + 1, differing + (not same or bool(info["success"]) != columns["next.success"][row])
        solved += bool(info["success"])
    print(f"  {made['env']}: {len(made['tries'])} recorded episodes played again, {rows} rows, {differing} of them differ, "
          f"{solved} episodes solved")
    return rows > 0 and differing == 0


if __name__ == "__main__":
    what, name, *rest = sys.argv[1:]
    pairs = dict(pair.split("=", 1) for pair in rest)
    fine = replay(name) if what == "replay" else steps(name, read_options(json.dumps(pairs))[0])
    sys.exit(0 if fine else 1)
