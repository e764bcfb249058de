"""A scripted controller for robosuite's Lift with the Panda and its default controller: over the cube, down, close, up."""
import numpy as np

# Actions are the hand's step in units of 0.05 m along x, y and z, three turns, and the gripper (-1 opens, 1 closes)
PER_METRE = 10.0
HOVER = 0.08     # metres above the cube, until the hand is over it
OVER = 0.02      # metres
HELD = 0.02      # metres from the cube within which fingers close
OPEN = 0.065     # metres between fingers: wider than the cube's diagonal
STILL = 0.02     # metres a second: the fingers have met the cube


def expert(observation):
    """The action at an observation of the adapter: a function of `object-state` and `robot0_proprio-state` alone."""
    away = observation["object-state"][7:10]  # from the hand to the cube
    left, right, speed = observation["robot0_proprio-state"][-4:-1]
    action = np.zeros(7)
    action[6] = -1
    if np.linalg.norm(away) < HELD:
        action[6] = 1
        if left - right < OPEN and abs(speed) < STILL:
            action[2] = 0.5
            return action
    target = away + (0, 0, HOVER if np.linalg.norm(away[:2]) > OVER else 0)
    action[:3] = np.clip(PER_METRE * target, -1, 1)
    return action
