"""The pipeline of bench_data_loader in Python: PyAV, torchvision v2 and a PyTorch DataLoader.

    loader_bench.py FOLDER time SAMPLES WORKERS    appends its cost to FOLDER/results.tsv
    loader_bench.py FOLDER compare SAMPLES         holds the samples against those that bench_data_loader wrote

Windows, crops and jitter factors come from FOLDER/windows_*.tsv, so both sides make the same batches. Per sample, as the
published recipe does it: three clips decoded to RGB (containers stay open), all views stacked along time, float, crop,
antialiased bilinear resize, jitter, bytes again, canvas, state and action with q99. Tokens are a fixed table. Tables are
in memory from the start (ours reads Parquet), and a worker computes on one thread.
"""

import json
import os
import resource
import sys
import time

import av
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms.v2 import InterpolationMode
from torchvision.transforms.v2 import functional as F

VIEWS = ["exterior_image_1_left", "exterior_image_2_left", "wrist_image_left"]
HEIGHT, WIDTH, BATCH = 176, 320, 4
STATE_DIM, ACTION_DIM, HORIZON = 64, 32, 24
FIELDS = [("images", np.uint8), ("state", np.float32), ("action", np.float32), ("state_mask", np.uint8),
          ("action_mask", np.uint8), ("text", np.int64), ("text_mask", np.int64), ("embodiment_id", np.int64)]


def numbers(text, kind):
    return [kind(part) for part in text.split(",") if part]


def read_windows(path):
    windows = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            _, crop, order, factors, video, states, actions = line.rstrip("\n").split("\t")
            windows.append((numbers(crop, int), numbers(order, int), numbers(factors, float), numbers(video, int),
                            numbers(states, int), numbers(actions, int)))
    return windows


class Clips:
    """Chosen frames of files that stay open."""

    def __init__(self):
        self.open = {}

    def read(self, path, frames):
        if path not in self.open:
            container = av.open(path)
            container.streams.video[0].codec_context.thread_count = 1
            self.open[path] = container
        container = self.open[path]
        stream = container.streams.video[0]
        step = 1 / (stream.average_rate * stream.time_base)
        first = stream.start_time or 0
        container.seek(int(round(first + frames[0] * step)), stream=stream)
        wanted, images = set(frames), []
        for frame in container.decode(stream):
            if round((frame.pts - first) / step) in wanted:
                images.append(frame.to_ndarray(format="rgb24"))
                if len(images) == len(frames):
                    return np.stack(images)
        raise RuntimeError(f"{path}: {len(images)} of {len(frames)} frames")


def jitter(images, order, factors):
    apply = [F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue]
    for operation in order:
        images = apply[operation](images, factors[operation])
    return images


def canvas(views):
    """u8 [V, T, h, w, 3] to [T, 2h, 2w, 3]: the wrist on top, its columns twice; the others below."""
    frames = views.shape[1]
    out = torch.zeros(frames, 2 * HEIGHT, 2 * WIDTH, 3, dtype=torch.uint8)
    out[:, :HEIGHT] = views[2].repeat_interleave(2, dim=2)
    out[:, HEIGHT:, :WIDTH] = views[0]
    out[:, HEIGHT:, WIDTH:] = views[1]
    return out


class Windows(Dataset):
    def __init__(self, folder, kind, samples):
        self.folder = folder
        self.windows = read_windows(f"{folder}/windows_{kind}.tsv")
        self.samples = samples
        self.clips = None
        columns, self.keys = {}, {"state": [], "action": []}
        with open(f"{folder}/norm.tsv", encoding="utf-8") as lines:
            for line in lines:
                part, key, reference, low, high = line.rstrip("\n").split("\t")
                bounds = [np.array(numbers(bound, float), np.float32) for bound in (low, high)]
                self.keys[part].append((key.split(","), reference.split(",") if reference else None, *bounds))
        rows = self.rows_of_table(folder)
        for part in self.keys.values():
            for (column, _, _), reference, _, _ in part:
                for name in [column] + ([reference[0]] if reference else []):
                    columns[name] = np.fromfile(f"{folder}/column_{name}.f64").reshape(rows, -1)
        self.columns = columns

    @staticmethod
    def rows_of_table(folder):
        with open(f"{folder}/droid-mini/meta/episodes.jsonl", encoding="utf-8") as lines:
            return json.loads(lines.readline())["length"]

    def slice(self, key, rows):
        column, start, end = key
        return self.columns[column][rows, int(start):int(end)].astype(np.float32)

    def vectors(self, part, rows, dim):
        out, at = np.zeros((len(rows), dim), np.float32), 0
        for key, reference, low, high in self.keys[part]:
            values = self.slice(key, rows)
            if reference:
                values = values - np.repeat(self.slice(reference, rows[::HORIZON]), HORIZON, axis=0)
            span = high - low
            scaled = np.where(span == 0, values, 2 * (values - low) / np.where(span == 0, 1, span) - 1)
            out[:, at:at + values.shape[1]] = np.clip(scaled, -1, 1)
            at += values.shape[1]
        mask = np.zeros((len(rows), dim), np.uint8)
        mask[:, :at] = 1
        return out, mask

    def __len__(self):
        return self.samples

    def __getitem__(self, index):
        if self.clips is None:
            self.clips = Clips()
        (top, left, height, width), order, factors, video, states, actions = self.windows[index % len(self.windows)]
        videos = f"{self.folder}/droid-mini/videos/chunk-000"
        clips = [self.clips.read(f"{videos}/observation.images.{view}/episode_000000.mp4", video) for view in VIEWS]
        images = torch.from_numpy(np.concatenate(clips)).permute(0, 3, 1, 2).to(torch.float32) / 255
        images = F.crop(images, top, left, height, width)
        images = F.resize(images, [HEIGHT, WIDTH], interpolation=InterpolationMode.BILINEAR, antialias=True)
        images = jitter(images, order, factors)
        images = (images * 255).to(torch.uint8).permute(0, 2, 3, 1).reshape(len(VIEWS), len(video), HEIGHT, WIDTH, 3)
        state, state_mask = self.vectors("state", states, STATE_DIM)
        action, action_mask = self.vectors("action", actions, ACTION_DIM)
        text, text_mask = torch.zeros(512, dtype=torch.int64), torch.zeros(512, dtype=torch.int64)
        text[:100] = torch.arange(3, 103)
        text_mask[:100] = 1
        return {"images": canvas(images), "text": text, "text_mask": text_mask, "state": state,
                "state_mask": state_mask, "action": action, "action_mask": action_mask,
                "embodiment_id": torch.tensor([17])}


def cpu_seconds():
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def report(folder, name, values):
    with open(f"{folder}/results.tsv", "a", encoding="utf-8") as out:
        for key, value in values.items():
            out.write(f"{name}\t{key}\t{value:.9g}\n")


def measure(folder, samples, workers):
    torch.set_num_threads(1)
    dataset = Windows(folder, "jitter", samples)
    cpu, start = cpu_seconds(), time.perf_counter()
    loader = DataLoader(dataset, batch_size=BATCH, num_workers=workers, prefetch_factor=2)
    batches, first = 0, None
    for batch in loader:
        assert batch["images"].shape == (BATCH, 33, 2 * HEIGHT, 2 * WIDTH, 3)
        assert batch["action"].shape == (BATCH, 96, ACTION_DIM)
        first = first or time.perf_counter() - start
        batches += 1
    del loader  # joins the workers, whose time counts then
    cpu, seconds = cpu_seconds() - cpu, time.perf_counter() - start
    values = {"samples": batches * BATCH, "samples_per_second": batches * BATCH / seconds, "cpu_seconds": cpu,
              "samples_per_cpu_second": batches * BATCH / cpu, "first_batch_seconds": first}
    print("python", values)
    report(folder, "python", values)


def compare(folder, samples):
    values, vectors = {"samples": samples}, 0.0
    for kind in ["plain", "jitter"]:
        dataset, worst, different, total = Windows(folder, kind, samples), 0, 0, 0
        for n in range(samples):
            sample = dataset[n]
            for name, dtype in FIELDS:
                got = np.fromfile(f"{folder}/samples_{kind}/{n}.{name}", dtype)
                want = np.asarray(sample[name]).reshape(-1)
                assert got.shape == want.shape, f"{name}: {got.shape} values, not {want.shape}"
                if name == "images":
                    apart = np.abs(got.astype(np.int16) - want.astype(np.int16))
                    worst = max(worst, int(apart.max()))
                    different, total = different + int((apart > 0).sum()), total + apart.size
                elif dtype == np.float32:
                    vectors = max(vectors, float(np.abs(got - want).max()))
                else:
                    assert (got == want).all(), f"{kind} sample {n}: {name} differs"
        values[f"{kind}_levels"], values[f"{kind}_share"] = worst, different / total
    values["vectors"] = vectors
    print("compare", values)
    report(folder, "compare", values)
    if values["plain_levels"] > 1 or values["jitter_levels"] > 2 or vectors > 1e-5:
        sys.exit("the batches are not the same")


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    if sys.argv[2] == "time":
        measure(sys.argv[1], int(sys.argv[3]), int(sys.argv[4]))
    else:
        compare(sys.argv[1], int(sys.argv[3]))
