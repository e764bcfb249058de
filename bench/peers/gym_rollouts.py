"""Records random rollouts of Gymnasium's MuJoCo tasks for bench_peers_gym_agreement.

    gym_rollouts.py FOLDER --steps 1000 --seed 1 ENV_ID...

Writes FOLDER/ENV_ID.safetensors. One environment runs freely under random actions, with resets; its state before each step is recorded. A
second one is put into that state (mj_resetData, state, mj_forward, warm start), makes the one step, and its observation, reward and end are
what the other side must give from the same state.
"""
import argparse
import json
import pathlib
import struct

import gymnasium
import mujoco
import numpy as np

DTYPES = {"float64": "F64", "float32": "F32", "int32": "I32"}


def save(path, tensors):
    header, data = {}, b""
    for name, array in tensors.items():
        raw = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": DTYPES[array.dtype.name], "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def put_into_state(env, qpos, qvel, warmstart):
    mujoco.mj_resetData(env.model, env.data)
    env.set_state(qpos, qvel)
    env.data.qacc_warmstart[:] = warmstart


def roll(env_id, steps, seed):
    free, probe = gymnasium.make(env_id), gymnasium.make(env_id).unwrapped
    probe.reset(seed=seed)
    free.reset(seed=seed)
    free.action_space.seed(seed)
    rows, data, starts = [], free.unwrapped.data, True
    for _ in range(steps):
        state = data.qpos.copy(), data.qvel.copy(), data.qacc_warmstart.copy()
        action = free.action_space.sample()
        put_into_state(probe, *state)
        obs, reward, terminated, _, _ = probe.step(action)
        _, _, ended, truncated, _ = free.step(action)
        rows.append((action.astype(np.float32), *state, np.asarray(obs, np.float64), float(reward), int(terminated), int(truncated), int(starts)))
        starts = ended or truncated
        if starts:
            free.reset()
    names = ["action", "qpos_before", "qvel_before", "qacc_warmstart_before", "obs", "reward", "terminated", "truncated", "reset_before"]
    flags = {"terminated", "truncated", "reset_before"}
    return {n: np.array([r[i] for r in rows], np.int32 if n in flags else np.float32 if n == "action" else np.float64) for i, n in enumerate(names)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("ids", nargs="+")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for env_id in args.ids:
        save(args.folder / f"{env_id}.safetensors", roll(env_id, args.steps, args.seed))
    print(f"Gymnasium {gymnasium.__version__}, MuJoCo {mujoco.__version__}, NumPy {np.__version__}")


if __name__ == "__main__":
    main()
