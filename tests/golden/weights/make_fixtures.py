"""Writes state_dict.pth beside this script: what torch.save makes of the kinds of tensors that state dicts hold."""
import collections
import pathlib

import torch

base = torch.arange(24, dtype=torch.float32).view(4, 6) / 8
state = collections.OrderedDict()
state["blocks.0.attn.q.weight"] = torch.nn.Parameter(base)
state["blocks.0.attn.k.weight"] = base.t()  # the same storage, transposed
state["blocks.0.attn.v.weight"] = base[1:3, 2:5]  # a window of it
state["blocks.0.attn.o.weight"] = base[2]  # contiguous, not at its begin
state["blocks.0.norm1.weight"] = torch.nn.Parameter((torch.arange(6) / 4 - 1).bfloat16(), requires_grad=False)
state["log_scale"] = torch.tensor(2.5)
state["ids"] = torch.tensor([[-1, 2**40]])
state["mask"] = torch.tensor([True, False, True])
state["empty"] = torch.empty(0, 3, dtype=torch.float16)
state._metadata = collections.OrderedDict([("", {"version": 1}), ("blocks.0", {"version": 2})])
whole = {"epoch": 7, "lr": 1e-4, "best": None, "done": True, "state_dict": state, "sizes": (1, 2, 3, 4), "notes": ["a", {}]}
torch.save(whole, pathlib.Path(__file__).with_name("state_dict.pth"))
