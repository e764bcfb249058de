"""The reference's DiT in PyTorch: bench/model/reference_dit.cpp's math, over weights and a batch that bench_model_engine --export wrote."""
import math

import torch
from torch.nn import functional as F


def attend(q, k, v):
    return F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)).transpose(1, 2)


def rotations(positions, m):
    inverse = torch.pow(10000.0, torch.arange(0, m, 2, dtype=torch.float64) / -m)
    angle = torch.outer(positions.double(), inverse)
    return torch.polar(torch.ones_like(angle), angle)


def rotate(x, cos, sin):
    """Pairs of channels as complex numbers in f64, written out so that a compiler may take it."""
    pairs = x.double().unflatten(-1, (-1, 2))
    a, b = pairs[..., 0], pairs[..., 1]
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(3).to(x.dtype)


def sinusoid(t, channels):
    half = channels // 2
    angle = torch.outer(t.flatten().double(), torch.pow(10000.0, -torch.arange(half, dtype=torch.float64) / half))
    return torch.cat((angle.cos(), angle.sin()), 1).view(t.shape[0], t.shape[1], channels)


class Dit:
    """Functions over a dictionary of weights; `block` is called through `run_block`, which may checkpoint and compile."""

    def __init__(self, case, batch, schedule, run_block):
        self.case, self.batch, self.schedule, self.run_block = case, batch, schedule, run_block
        latents = batch["noisy_latents"]
        self.frames, self.rows, self.cols = latents.shape[2], latents.shape[3] // 2, latents.shape[4] // 2
        self.frame_tokens = self.rows * self.cols
        self.video = self.frames * self.frame_tokens
        self.per_block, self.blocks = case["frames_per_block"], (self.frames - 1) // case["frames_per_block"]
        self.actions, self.states = batch["noisy_actions"].shape[1] // self.blocks, batch["state"].shape[1] // self.blocks

    def linear(self, w, name, x):
        return F.linear(x.to(w[name + ".weight"].dtype), w[name + ".weight"], w[name + ".bias"])

    def layer_norm(self, x, eps, w=None, name=""):
        affine = (w[name + ".weight"].float(), w[name + ".bias"].float()) if name else (None, None)
        return F.layer_norm(x.float(), (x.shape[-1],), *affine, eps)

    def rms(self, w, name, x):
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, True) + self.case["eps"])).to(x.dtype) * w[name]

    def category(self, w, name, x):
        ids = torch.zeros(x.shape[0], dtype=torch.long)
        weight = w[name + ".W"][ids]
        return torch.bmm(x.to(weight.dtype), weight) + w[name + ".b"][ids].unsqueeze(1)

    def patches(self, w, latents):
        weight = w["patch_embedding.weight"]
        return F.conv3d(latents.to(weight.dtype), weight, w["patch_embedding.bias"], (1, 2, 2)).flatten(2).transpose(1, 2)

    def context(self, w):
        text = self.linear(w, "text_embedding.2", F.gelu(self.linear(w, "text_embedding.0", self.batch["context"]), approximate="tanh"))
        normed = self.layer_norm(self.batch["clip"], 1e-5, w, "img_emb.proj.0")
        hidden = self.linear(w, "img_emb.proj.3", F.gelu(self.linear(w, "img_emb.proj.1", normed)))
        return torch.cat((self.layer_norm(hidden, 1e-5, w, "img_emb.proj.4").to(text.dtype), text), 1)

    def time_embedding(self, w, t):
        return self.linear(w, "time_embedding.2", F.silu(self.linear(w, "time_embedding.0", sinusoid(t, self.case["freq_dim"]))))

    def time_projection(self, w, e):
        return self.linear(w, "time_projection.1", F.silu(e)).unflatten(2, (6, -1))

    def action_tokens(self, w, t):
        a = self.category(w, "action_encoder.W1", self.batch["noisy_actions"])
        half = a.shape[2] // 2
        angle = t.float().unsqueeze(-1) * torch.exp(torch.arange(half, dtype=torch.float32) * -(math.log(10000.0) / half))
        tau = torch.cat((angle.sin(), angle.cos()), -1).to(a.dtype)
        return self.category(w, "action_encoder.W3", F.silu(self.category(w, "action_encoder.W2", torch.cat((a, tau), -1))))

    def state_tokens(self, w):
        return self.category(w, "state_encoder.layer2", F.relu(self.category(w, "state_encoder.layer1", self.batch["state"])))

    def frequencies(self, size):
        """Rotations of [clean V | noisy V | A | S]."""
        side = 2 * (size // 6)
        grid = (self.frames, self.rows, self.cols)
        axes = [rotations(torch.arange(n), m) for n, m in zip(grid, (size - 2 * side, side, side))]
        spread = [r.view([-1 if axis == i else 1 for axis in range(3)] + [r.shape[1]]).expand(*grid, -1) for i, r in enumerate(axes)]
        video = torch.cat(spread, 3).flatten(0, 2)
        tokens = [rotations(torch.arange(self.blocks * n), size) for n in (self.actions, self.states)]
        all_rows = torch.cat([video, video, *tokens], 0)
        return all_rows.real.contiguous(), all_rows.imag.contiguous()

    def self_attention(self, q, k, v):
        """Clean frames, noisy frames, actions, states, each block by itself."""
        fs, noisy, action0 = self.frame_tokens, self.video, 2 * self.video
        state0, count = action0 + self.blocks * self.actions, self.per_block * self.frame_tokens
        begins = [(1 + i * self.per_block) * fs for i in range(self.blocks)]

        def seen(t, i):
            return torch.cat((t[:, :begins[i]], t[:, noisy + begins[i]:noisy + begins[i] + count],
                              t[:, action0 + i * self.actions:action0 + (i + 1) * self.actions],
                              t[:, state0 + i * self.states:state0 + (i + 1) * self.states]), 1)

        out = [attend(q[:, :fs], k[:, :fs], v[:, :fs])]
        out += [attend(q[:, b:b + count], k[:, :b + count], v[:, :b + count]) for b in begins]
        out.append(attend(q[:, noisy:noisy + fs], k[:, noisy:noisy + fs], v[:, noisy:noisy + fs]))
        out += [attend(q[:, noisy + b:noisy + b + count], seen(k, i), seen(v, i)) for i, b in enumerate(begins)]
        for i in range(self.blocks):
            begin = action0 + i * self.actions
            out.append(attend(q[:, begin:begin + self.actions], seen(k, i), seen(v, i)))
        for i in range(self.blocks):
            rows = slice(state0 + i * self.states, state0 + (i + 1) * self.states)
            out.append(attend(q[:, rows], k[:, rows], v[:, rows]))
        return torch.cat(out, 1)

    def cross_attention(self, w, x, context):
        heads = lambda t: t.unflatten(2, (self.case["heads"], -1))
        images = self.batch["clip"].shape[1]
        image, text = context[:, :images], context[:, images:]
        q = heads(self.rms(w, "norm_q.weight", self.linear(w, "q", x)))
        k, v = heads(self.rms(w, "norm_k.weight", self.linear(w, "k", text))), heads(self.linear(w, "v", text))
        ki, vi = heads(self.rms(w, "norm_k_img.weight", self.linear(w, "k_img", image))), heads(self.linear(w, "v_img", image))
        return self.linear(w, "o", attend(q, k, v).flatten(2) + attend(q, ki, vi).flatten(2))

    def block(self, w, x, e0, context, cos, sin):
        """One transformer block over its own weights, by their names inside the block."""
        eps, heads = self.case["eps"], lambda t: t.unflatten(2, (self.case["heads"], -1))
        e = [part.squeeze(2) for part in (w["modulation"].unsqueeze(1) + e0).chunk(6, 2)]
        own = lambda prefix: {name[len(prefix):]: t for name, t in w.items() if name.startswith(prefix)}
        attn = own("self_attn.")
        h = self.layer_norm(x, eps) * (1 + e[1]) + e[0]
        q = rotate(heads(self.rms(attn, "norm_q.weight", self.linear(attn, "q", h))), cos, sin)
        k = rotate(heads(self.rms(attn, "norm_k.weight", self.linear(attn, "k", h))), cos, sin)
        attended = self.self_attention(q, k, heads(self.linear(attn, "v", h)))
        x = x + self.linear(attn, "o", attended.flatten(2)) * e[2]
        x = x + self.cross_attention(own("cross_attn."), self.layer_norm(x, eps, w, "norm3"), context)
        f = self.layer_norm(x, eps) * (1 + e[4]) + e[3]
        return x + self.linear(w, "ffn.2", F.gelu(self.linear(w, "ffn.0", f), approximate="tanh")) * e[5]

    def head(self, w, x, e):
        shift, scale = ((w["head.modulation"].unsqueeze(1) + e.unsqueeze(2)).chunk(2, 2))
        return self.linear(w, "head.head", self.layer_norm(x, self.case["eps"]) * (1 + scale.squeeze(2)) + shift.squeeze(2))

    def loss(self, w):
        b, schedule = self.batch, self.schedule
        t_video, t_action = schedule["timesteps"][b["video_ids"]], schedule["timesteps"][b["action_ids"]]
        t = torch.cat((t_video.repeat_interleave(self.frame_tokens, 1), t_action, t_action[:, ::self.actions // self.states]), 1)
        e = self.time_embedding(w, t)
        e0 = torch.cat((self.time_projection(w, self.time_embedding(w, torch.zeros(len(t), self.video))), self.time_projection(w, e)), 1)
        context = self.context(w)
        x = torch.cat((self.patches(w, b["clean_latents"]), self.patches(w, b["noisy_latents"]), self.action_tokens(w, t_action), self.state_tokens(w)), 1)
        cos, sin = self.frequencies(x.shape[2] // self.case["heads"])
        for i in range(self.case["layers"]):
            prefix = f"blocks.{i}."
            own = {name[len(prefix):]: tensor for name, tensor in w.items() if name.startswith(prefix)}
            x = self.run_block(self.block, own, x, e0, context, cos, sin)
        noisy, channels = x[:, self.video:], b["video_target"].shape[1]
        tokens = self.head(w, noisy[:, :self.video], e[:, :self.video]).reshape(len(t), self.frames, self.rows, self.cols, 1, 2, 2, channels)
        velocity = torch.einsum("bfhwpqrc->bcfphqwr", tokens).reshape(len(t), channels, self.frames, 2 * self.rows, 2 * self.cols)
        decoded = F.relu(self.category(w, "action_decoder.layer1", noisy[:, self.video:self.video + b["noisy_actions"].shape[1]]))
        decoded = self.category(w, "action_decoder.layer2", decoded)
        video_error = (velocity.float() - b["video_target"].float()).square().mean((1, 3, 4))
        action_error = (decoded.float() - b["action_target"].float()).square() * b["action_mask"] * b["has_real_action"].view(-1, 1, 1)
        return (video_error * schedule["weights"][b["video_ids"]]).mean() + (action_error.mean(2) * schedule["weights"][b["action_ids"]]).mean()
