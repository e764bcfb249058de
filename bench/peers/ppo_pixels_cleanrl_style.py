"""PPO from pictures as CleanRL publishes it, in one file of PyTorch over Gymnasium's vector API: the peer of pixels_bench.sh.

    ppo_pixels_cleanrl_style.py --envs gym-sync|gym-async --torch-threads 1 [--num-envs 16] [--steps 32] [--minibatches 8] [--epochs 4] [--hidden 512]
                                [--compile] [--iterations 12] [--skip 2] [--seed 1]

What ppo_cleanrl_style.py does, but that actor and critic look at u8 pictures of SIDE pixels, each through convolutions of its own (Mnih et al. 2015: 8x8 by
4, 4x4 by 2, 3x3 by 1, 32, 64 and 64 channels) and a ReLU layer of HIDDEN; pictures are divided by 255 and not normalised. Prints the same.
"""
import numpy as np
import torch
from torch import nn

import ppo_cleanrl_style as ppo

SIDE, CHANNELS = 84, (32, 64, 64)


class Pictures(ppo.Environments):
    task_options = {"obs_type": "pixels", "observation_width": SIDE, "observation_height": SIDE}

    def normalised(self, obs):
        return torch.from_numpy(obs)


class PictureRollout(ppo.Rollout):
    obs_dtype = torch.uint8


class Look(nn.Module):
    """u8 [N, H, W, C] to f32 [N, C, H, W] in [0, 1]."""

    def forward(self, pictures):
        return pictures.permute(0, 3, 1, 2).float() / 255.0


def convolution(inputs, outputs, size, stride):
    layer = nn.Conv2d(inputs, outputs, size, stride)
    nn.init.orthogonal_(layer.weight, 2**0.5)
    nn.init.zeros_(layer.bias)
    return layer


def vision_network(shape, outputs, hidden, gain):
    a, b, c = CHANNELS
    looks = nn.Sequential(Look(), convolution(shape[2], a, 8, 4), nn.ReLU(), convolution(a, b, 4, 2), nn.ReLU(), convolution(b, c, 3, 1), nn.ReLU(), nn.Flatten())
    with torch.no_grad():
        features = looks(torch.zeros((1, *shape), dtype=torch.uint8)).shape[1]
    return nn.Sequential(looks, ppo.linear(features, hidden), nn.ReLU(), ppo.linear(hidden, outputs, gain))


class PictureActorCritic(ppo.ActorCritic):
    def __init__(self, shape, action_size, hidden):
        nn.Module.__init__(self)
        self.critic = vision_network(shape, 1, hidden, 1.0)
        self.actor = vision_network(shape, action_size, hidden, 0.01)
        self.log_std = nn.Parameter(torch.zeros(1, action_size))


def picture_network(envs, args):
    return PictureActorCritic(envs.obs_shape, int(np.prod(envs.action_shape)), args.hidden)


def versions():
    import cv2
    import gymnasium
    import pygame
    import pymunk
    from importlib.metadata import version
    print(f"PyTorch {torch.__version__}, Gymnasium {gymnasium.__version__}, gym-pusht {version('gym-pusht')} with pymunk {pymunk.version}, pygame "
          f"{pygame.version.ver}, OpenCV {cv2.__version__}, NumPy {np.__version__}")


def main():
    args = ppo.read_arguments(["gym-sync", "gym-async"], "gym_pusht/PushT-v0", num_envs=16, steps=32, minibatches=8, epochs=4, hidden=512)
    import gym_pusht  # noqa: F401, which registers the task
    versions() if args.version else ppo.train(args, Pictures, picture_network, PictureRollout)


if __name__ == "__main__":
    main()
