"""One round of TorchCodec and PyAV over the clips that bench_data_decode prepared.

    decode_bench.py CLIPS.tsv COSTS.tsv
    decode_bench.py --versions

Appends "set<TAB>mode<TAB>CPU ms per clip<TAB>-1" lines. Files stay open between clips; decoders use one thread; both deliver
RGB frames, 33 of a clip, three apart.
"""

import sys
import time

import av
import torch
import torchcodec
from torchcodec._core import get_ffmpeg_library_versions
from torchcodec.decoders import VideoDecoder

CLIP_FRAMES, STRIDE = 33, 3


def read_clips(path):
    sets = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            name, file, start = line.rstrip("\n").split("\t")
            sets.setdefault(name, []).append((file, int(start)))
    return sets


def torchcodec_reader(mode):
    decoders = {}

    def read(file, start):
        if file not in decoders:
            decoders[file] = VideoDecoder(file, seek_mode=mode, num_ffmpeg_threads=1)
        frames = decoders[file].get_frames_at([start + STRIDE * i for i in range(CLIP_FRAMES)])
        assert frames.data.shape[0] == CLIP_FRAMES

    return read


def pyav_reader():
    containers = {}

    def read(file, start):
        if file not in containers:
            container = av.open(file)
            container.streams.video[0].codec_context.thread_count = 1
            containers[file] = container
        container = containers[file]
        stream = container.streams.video[0]
        step = 1 / (stream.average_rate * stream.time_base)
        first = stream.start_time or 0
        container.seek(int(round(first + start * step)), stream=stream)
        wanted = {start + STRIDE * i for i in range(CLIP_FRAMES)}
        images = []
        for frame in container.decode(stream):
            if round((frame.pts - first) / step) in wanted:
                images.append(frame.to_ndarray(format="rgb24"))
                if len(images) == CLIP_FRAMES:
                    return
        raise RuntimeError(f"{file}: {len(images)} of {CLIP_FRAMES} frames from {start}")

    return read


def versions():
    ffmpeg = get_ffmpeg_library_versions()["ffmpeg_version"]
    return (
        f"TorchCodec {torchcodec.__version__} on PyTorch {torch.__version__} and FFmpeg {ffmpeg}; "
        f"PyAV {av.__version__} with the FFmpeg of its wheel."
    )


def main():
    if sys.argv[1] == "--versions":
        print(versions())
        return
    torch.set_num_threads(1)
    modes = {
        "TorchCodec exact": torchcodec_reader("exact"),
        "TorchCodec approximate": torchcodec_reader("approximate"),
        "PyAV": pyav_reader(),
    }
    with open(sys.argv[2], "a", encoding="utf-8") as out:
        for name, clips in read_clips(sys.argv[1]).items():
            for mode, read in modes.items():
                # opens the files and leaves each behind its first clip: starts descend, so that no pre-roll is saved below
                for file, start in {file: (file, start) for file, start in reversed(clips)}.values():
                    read(file, start)
                begin = time.process_time()
                for file, start in clips:
                    read(file, start)
                spent = time.process_time() - begin
                out.write(f"{name}\t{mode}\t{1000 * spent / len(clips):.4f}\t-1\n")


if __name__ == "__main__":
    main()
