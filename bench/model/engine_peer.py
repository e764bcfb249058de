"""The learner's step in PyTorch, eager or compiled: the peer of bench_model_engine.

    engine_peer.py CASE.safetensors eager|compile [--steps 1]
    engine_peer.py --version

Trains what bench_model_engine --export wrote: f32 masters and moments, for bf16 a copy of them that is computed with and gradients in f32
(FSDP2's mixed precision), every block checkpointed, clip by the global norm, torch.optim.AdamW(fused=True). One step that is not timed
comes first: it compiles. Prints "MS_A_SAMPLE LOSS" of the median step and of the first.
"""
import argparse
import json
import statistics
import time

import torch
from torch.utils.checkpoint import checkpoint

from engine_peer_model import Dit

DTYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "I64": torch.int64, "BOOL": torch.bool}
RATE = 1e-5


def read_case(path):
    """The safetensors container: u64 header length, JSON, data."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = bytearray(file.read())
    case = json.loads(header.pop("__metadata__")["case"])
    groups = {"weights": {}, "batch": {}, "schedule": {}}
    for name, entry in header.items():
        group, key = name.split(".", 1)
        begin, end = entry["data_offsets"]
        dtype = DTYPES[entry["dtype"]]
        groups[group][key] = torch.frombuffer(data, dtype=dtype, count=(end - begin) // dtype.itemsize, offset=begin).view(entry["shape"]).clone()
    return case, groups


class Trainer:
    def __init__(self, case, groups, compiled):
        self.case = case
        run = lambda block, *args: checkpoint(block, *args, use_reentrant=False)
        if compiled:
            of_block = {}  # one compiled function, which all blocks share
            run = lambda block, *args: checkpoint(of_block.setdefault(0, torch.compile(block)), *args, use_reentrant=False)
        self.dit = Dit(case, groups["batch"], groups["schedule"], run)
        self.names = sorted(groups["weights"])
        self.masters = [groups["weights"][name].requires_grad_(True) for name in self.names]
        self.leaves = [m.detach().bfloat16().requires_grad_(True) for m in self.masters] if case["bf16"] else self.masters
        self.optimizer = torch.optim.AdamW(self.masters, lr=RATE, betas=(case["beta1"], case["beta2"]), eps=case["adam_eps"],
                                           weight_decay=case["weight_decay"], fused=True)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.dit.loss(dict(zip(self.names, self.leaves)))
        loss.backward()
        if self.case["bf16"]:
            for master, leaf in zip(self.masters, self.leaves):
                master.grad, leaf.grad = None if leaf.grad is None else leaf.grad.float(), None
        torch.nn.utils.clip_grad_norm_(self.masters, self.case["clip"])
        self.optimizer.step()
        if self.case["bf16"]:
            with torch.no_grad():
                torch._foreach_copy_(self.leaves, self.masters)
        return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file", nargs="?")
    parser.add_argument("mode", nargs="?", choices=["eager", "compile"])
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--version", action="store_true")
    args = parser.parse_args()
    if args.version:
        print(f"PyTorch {torch.__version__}")
        return
    case, groups = read_case(args.file)
    torch.set_num_threads(case["threads"])
    trainer = Trainer(case, groups, args.mode == "compile")
    first, seconds = trainer.step(), []
    for _ in range(args.steps):
        begin = time.monotonic()
        trainer.step()
        seconds.append(time.monotonic() - begin)
    samples = len(groups["batch"]["state"])
    print(f"{statistics.median(seconds) * 1e3 / samples:.3f} {first:.8g}")


if __name__ == "__main__":
    main()
