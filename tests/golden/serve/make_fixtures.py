"""Rewrites the frames in this folder with the packages that clients use: PYTHONPATH=.deps/clients python3 tests/golden/serve/make_fixtures.py"""

import io
import pathlib

import msgpack
import numpy as np
from openpi_client import msgpack_numpy

HERE = pathlib.Path(__file__).parent


def write(name, data):
    (HERE / name).write_bytes(data)


def npy(array):
    out = io.BytesIO()
    np.save(out, array, allow_pickle=False)
    return out.getvalue()


def groot(value):
    def default(obj):
        return {"__ndarray_class__": True, "as_npy": npy(obj)}

    return msgpack.packb(value, default=default)


def pixels(first, shape):
    return (np.arange(np.prod(shape)) + first).astype(np.uint8).reshape(shape)


# What the tests' policy is: three cameras, DROID's state and action, 3 rows of actions that count up in quarters.
JOINTS = np.arange(7, dtype=np.float32) / 8
GRIPPER = np.array([0.5], dtype=np.float64)
ACTIONS = (np.arange(24, dtype=np.float32) / 4).reshape(3, 8)
OBSERVATION = {
    "observation/exterior_image_0_left": pixels(0, (2, 3, 3)),
    "observation/exterior_image_1_left": pixels(100, (1, 2, 3, 3)),
    "observation/wrist_image_left": pixels(200, (2, 3, 3)),
    "observation/joint_position": JOINTS,
    "observation/cartesian_position": np.zeros(6),
    "observation/gripper_position": GRIPPER,
    "prompt": "pick up the cup",
}

# DreamZero and RoboArena
write("dreamzero_config.bin", msgpack_numpy.packb({
    "image_resolution": [180, 320], "needs_wrist_camera": True, "n_external_cameras": 2, "needs_stereo_camera": False,
    "needs_session_id": True, "action_space": "joint_position"}))
write("dreamzero_infer.bin", msgpack_numpy.packb({**OBSERVATION, "session_id": "7f3a", "endpoint": "infer"}))
write("dreamzero_reset.bin", msgpack_numpy.packb({"endpoint": "reset"}))
write("dreamzero_reply_array.bin", msgpack_numpy.packb(ACTIONS))
write("dreamzero_reply_actions.bin", msgpack_numpy.packb({"actions": ACTIONS}))
write("dreamzero_reply_keys.bin", msgpack_numpy.packb({"action.joint_position": ACTIONS[:, :7], "action.gripper_position": ACTIONS[:, 7:]}))
write("dreamzero_reset_reply.txt", b"reset successful")

# The same request from the vendored client that packs marker names as str
def str_markers(obj):
    return {"__ndarray__": True, "data": obj.tobytes(), "dtype": obj.dtype.str, "shape": obj.shape}
write("dreamzero_infer_str_markers.bin", msgpack.packb({**OBSERVATION, "session_id": "7f3a", "endpoint": "infer"}, default=str_markers))

# OpenPI
write("openpi_metadata.bin", msgpack_numpy.packb({
    "policy": "fixture", "embodiment": "oxe_droid", "image_resolution": [180, 320],
    "views": ["exterior_image_1_left", "exterior_image_2_left", "wrist_image_left"],
    "state": {"joint_position": 7, "gripper_position": 1}, "action": {"joint_position": 7, "gripper_position": 1},
    "action_horizon": 3, "action_dim": 8}))
write("openpi_request.bin", msgpack_numpy.packb({
    "observation/exterior_image_1_left": pixels(0, (2, 3, 3)), "observation/exterior_image_2_left": pixels(100, (2, 3, 3)),
    "observation/wrist_image_left": pixels(200, (2, 3, 3)),
    "observation/state": np.concatenate([JOINTS, GRIPPER.astype(np.float32)]), "prompt": "pick up the cup"}))
write("openpi_reply_first.bin", msgpack_numpy.packb({"actions": ACTIONS, "server_timing": {"infer_ms": 12.5}}))
write("openpi_reply_later.bin", msgpack_numpy.packb({"actions": ACTIONS, "server_timing": {"infer_ms": 12.0, "prev_total_ms": 31.25}}))

# GR00T
NESTED = {
    "video": {"exterior_image_1_left": np.stack([pixels(0, (1, 2, 3, 3)), pixels(7, (1, 2, 3, 3))]),
              "exterior_image_2_left": np.stack([pixels(100, (1, 2, 3, 3)), pixels(107, (1, 2, 3, 3))]),
              "wrist_image_left": np.stack([pixels(200, (1, 2, 3, 3)), pixels(207, (1, 2, 3, 3))])},
    "state": {"joint_position": np.stack([JOINTS[None], JOINTS[None] + 1]),
              "gripper_position": np.stack([GRIPPER[None], GRIPPER[None] + 1]).astype(np.float32)},
    "language": {"annotation.language.action_text": [["pick up the cup"], ["open the door"]]},
}
write("groot_get_action.bin", groot({"endpoint": "get_action", "data": {"observation": NESTED, "options": None}}))
write("groot_get_action_flat.bin", groot({"data": {
    "video.exterior_image_1_left": pixels(0, (1, 2, 3, 3)), "video.exterior_image_2_left": pixels(100, (1, 2, 3, 3)),
    "video.wrist_image_left": pixels(200, (1, 2, 3, 3)), "state.joint_position": JOINTS[None], "state.gripper_position": GRIPPER[None],
    "annotation.human.task_description": ["pick up the cup"]}, "api_token": "0123456789abcdef"}))
write("groot_reply.bin", groot([{"joint_position": np.stack([ACTIONS[:, :7], ACTIONS[:, :7] + 1]),
                                 "gripper_position": np.stack([ACTIONS[:, 7:], ACTIONS[:, 7:] + 1])}, {}]))
write("groot_reply_flat.bin", groot([{"action.joint_position": np.ascontiguousarray(ACTIONS[:, :7]),
                                      "action.gripper_position": np.ascontiguousarray(ACTIONS[:, 7:])}, {}]))
write("groot_ping.bin", groot({"endpoint": "ping"}))
write("groot_ping_reply.bin", groot({"status": "ok", "message": "Server is running"}))
write("groot_reset.bin", groot({"endpoint": "reset", "data": {"options": None}}))
write("groot_reset_reply.bin", groot({}))
write("groot_kill.bin", groot({"endpoint": "kill"}))
write("groot_get_modality_config.bin", groot({"endpoint": "get_modality_config"}))
def modality(indices, keys):
    return {"__ModalityConfig_class__": True, "as_json": {"delta_indices": indices, "modality_keys": keys}}
write("groot_modality_reply.bin", groot({
    "video": modality([0], ["exterior_image_1_left", "exterior_image_2_left", "wrist_image_left"]),
    "state": modality([0], ["joint_position", "gripper_position"]), "action": modality([0, 1, 2], ["joint_position", "gripper_position"]),
    "language": modality([0], ["annotation.language.action_text"])}))
write("groot_error_reply.bin", groot({"error": "invalid_argument: get_action wants a map under `data`"}))

# NumPy's own files and scalars
write("array_c.npy", npy(np.arange(24, dtype="<f8").reshape(2, 3, 4)))
write("array_fortran.npy", npy(np.asfortranarray(np.arange(24, dtype="<f8").reshape(2, 3, 4))))
write("array_scalar.npy", npy(np.array(2.5, dtype="<f4")))
second = io.BytesIO()
np.lib.format.write_array(second, np.arange(6, dtype="<i4").reshape(3, 2), version=(2, 0))
write("array_version2.npy", second.getvalue())
write("text.npy", npy(np.array(["pick up", "\u00e4 cup"])))
write("scalars.bin", msgpack_numpy.packb({
    "f4": np.float32(0.5), "i8": np.int64(-3), "u1": np.uint8(200), "bool": np.bool_(True), "f2": np.float16(1.5), "text": np.str_("cup")}))
