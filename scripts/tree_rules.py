"""The tables of scripts/check-tree. Texts of several names are lists separated by blanks."""

# What each top-level folder may include besides itself.
FOLDER_EDGES = {
    "base": "",
    "configs": "base",
    "placement": "base configs",
    "device": "base configs",
    "image": "base configs",
    "kernels": "base configs device image",
    "comm": "base configs device",
    "env": "base configs image",
    "data": "base configs image kernels",
    "model": "base configs device image kernels comm",
    "workers": "base configs device image kernels comm env data model placement",
    "actors": "base configs image kernels comm env data model placement workers",
    "app": "base configs device image kernels comm env data model placement workers actors",
}

# What each folder may include of its own top-level folder. Without cycles, and without entries that no include uses.
SUBFOLDER_EDGES = {
    "base": "",
    "base/page": "base",
    "configs": "",
    "placement": "",
    "device": "",
    "device/cuda": "device",
    "image": "",
    "kernels": "",
    "kernels/cuda": "kernels",
    "comm/bridge": "comm/channel comm/control comm/serve",
    "comm/channel": "comm/control",
    "comm/collective": "",
    "comm/control": "comm/front",
    "comm/front": "",
    "comm/serve": "comm/control comm/front",
    "env": "",
    "env/arm7": "env env/mujoco env/render",
    "env/classic": "env",
    "env/mujoco": "env",
    "env/mujoco/models": "env/mujoco",
    "env/mujoco/tasks": "env/mujoco env/mujoco/models",
    "env/reward": "env",
    "env/registry": "env env/arm7 env/classic env/mujoco",
    "env/render": "",
    "data": "data/index data/lerobot data/sampling data/statistics",
    "data/convert": "data/health data/lerobot data/statistics data/video",
    "data/health": "data/index data/lerobot data/sampling data/statistics data/video",
    "data/index": "data/lerobot data/sampling data/statistics data/video",
    "data/language": "",
    "data/init": "data/health data/lerobot data/video",
    "data/lerobot": "data/language data/video",
    "data/sample": "data data/language data/lerobot data/sampling data/video",
    "data/sampling": "",
    "data/statistics": "data/lerobot",
    "data/toy": "data/lerobot",
    "data/video": "",
    "model/calibration": "model/cores model/optim model/program",
    "model/codec": "",
    "model/cores": "",
    "model/io": "",
    "model/loss": "",
    "model/optim": "",
    "model/policy": "model/loss model/shard",
    "model/program": "model/cores",
    "model/shard": "model/optim model/program model/step",
    "model/step": "",
    "model/wan": "model/codec model/cores model/loss model/program model/shard",
    "model/wan/infer": "model/cores model/loss model/policy model/program model/shard model/wan",
    "model/wan/policy": "model/loss model/policy model/program model/shard model/wan model/wan/infer",
    "model/wan/vae": "model/codec model/shard model/wan",
    "model/wan/weights": "model/io model/shard model/wan model/wan/vae",
    "workers/bridge": "workers/node",
    "workers/checkpoint": "",
    "workers/controller": "workers/checkpoint workers/node workers/report",
    "workers/decoder": "workers/stream",
    "workers/decoder/loader": "workers/stream",
    "workers/encoder": "",
    "workers/evaluator": "workers/inference/agent workers/rollout",
    "workers/inference/agent":
        "workers/checkpoint workers/inference/dreamzero workers/inference/policy workers/report workers/rollout",
    "workers/inference/dreamzero": "workers/checkpoint workers/inference/policy",
    "workers/inference/evaluate":
        "workers/checkpoint workers/inference/agent workers/inference/policy workers/record workers/report",
    "workers/inference/policy": "workers/checkpoint",
    "workers/inference/serve": "workers/inference/policy",
    "workers/learner": "workers/checkpoint workers/encoder workers/stream",
    "workers/learner/imitation":
        "workers/inference/agent workers/learner workers/record workers/rollout workers/rollout/replay",
    "workers/learner/rl":
        "workers/checkpoint workers/inference/agent workers/learner workers/learner/imitation "
        "workers/rollout workers/rollout/replay workers/stream",
    "workers/node": "",
    "workers/pipeline":
        "workers/checkpoint workers/encoder workers/inference/agent workers/inference/policy workers/learner "
        "workers/learner/imitation workers/rollout",
    "workers/record": "",
    "workers/report": "",
    "workers/report/card": "workers/checkpoint workers/report workers/report/compare",
    "workers/report/compare": "workers/checkpoint workers/report",
    "workers/report/run":
        "workers/checkpoint workers/controller workers/inference/agent "
        "workers/inference/evaluate workers/report",
    "workers/rollout": "workers/checkpoint workers/stream",
    "workers/rollout/replay": "workers/rollout",
    "workers/stream": "",
    "workers/sweep": "workers/node",
    "actors": "",
    "app": "",
}

# Third-party headers (a regular expression for the start of the include), what they are, and the folders that may
# include them. Tests, benchmarks and examples may include what they like.
HEADER_OWNERS = [
    (r"caf/", "CAF", "actors app"),
    (r"zmq", "ZeroMQ", "comm"),
    (r"msgpack", "MessagePack", "comm"),
    (r"boost/(beast|asio)", "Boost.Beast", "comm"),
    (r"(gloo|torch/csrc/distributed)/", "Gloo", "comm"),
    (r"nccl\.h", "NCCL", "comm"),
    (r"(libav|libsw)", "FFmpeg", "data"),
    (r"(arrow|parquet)/", "Arrow", "data"),
    (r"sentencepiece", "SentencePiece", "data"),
    (r"unicode/", "ICU", "data"),
    (r"sqlite3", "SQLite", "workers/controller"),
    (r"yaml-cpp", "yaml-cpp", "configs"),
    (r"cairo", "cairo", "workers/report"),
    (r"CLI/", "CLI11", "app"),
    (r"mujoco/", "MuJoCo", "env/mujoco env/arm7"),
]

# What a test uses (a regular expression), and the headers that it may come from; a complaint names the first.
TEST_HEADERS = [
    (r"^TEST(?:_[FP])?\(", ["gtest/gtest.h", "gmock/gmock.h"]),
    (r"\bEXPECT_THAT\(", ["gmock/gmock.h"]),
    (r"\bfmt::(?:format|print)\b", ["fmt/format.h", "fmt/core.h", "fmt/ranges.h", "fmt/chrono.h"]),
    (r"\bstd::mem(?:cpy|set|cmp)\b", ["cstring"]),
    (r"\bstd::(?:jthread|this_thread)\b", ["thread"]),
    (r"\bstd::filesystem\b", ["filesystem"]),
]

# Folders beside the product's: their headers need no comments, and include rules do not bind them.
OTHER_FOLDERS = "tests bench examples"

# Programs declared in these folders are what Troupe is; a source file that none of them links is dead.
PROGRAM_FOLDERS = "app examples"

# Sources of the product, or folders of them, that no program links, and why.
UNLINKED_SOURCES = {
    "app/cuda_module.cpp": "the module that programs open for their devices (device/module.h)",
    "comm/collective/nccl_collective.cpp": "in that module",
    "comm/collective/nccl_watch.cpp": "in that module",
    "device/cuda/": "in that module",
    "kernels/cuda/": "in that module",
    "kernels/image_chain.cu": "built after scripts/setup --cuda; jobs on GPUs will link it, tests/kernels runs it on one",
    "tests/device/ptx/kernels/planted.cu": "nvcc translates it for the interpreter's tests",
    "tests/device/ptx/kernels/refused.cu": "nvcc translates it for the interpreter's tests",
    "tests/device/ptx/kernels/sound.cu": "nvcc translates it for the interpreter's tests",
}

# Mentions of pages that are not pages of this repository, and why. A name alone, or a pattern for a path.
OTHER_PAGES = {
    "gpu-check.md": "scripts/gpu-check writes it",
    "results.md": "troupe eval writes it, in whatever folder",
    "sweep.md": "troupe sweep writes it beside the runs",
    "RESULT.md": "placeholder for the file that --out of a benchmark names",
    "golden/*/README.md": "comes with the golden data, outside the repository",
    "../shared/golden/README.md": "the golden data itself, where it lies beside the checkout",
}

# Records of measurements: true on their day, so their citations are not checked.
RECORDS = "bench/results"

# Other files whose citations are not checked, and why.
UNCHECKED_CITATIONS = {
    "scripts/tree_rules.py": "names the pages that are no pages",
    "tests/scripts/check_tree_test.py": "cites the pages of the trees that it makes",
}

# Files whose namespaces are not troupe::<folder> alone, and why.
OTHER_NAMESPACES = {
    "app/troupe.h": "names in troupe itself what programs outside the repository may rely on",
    "base/namespaces.h": "declares the namespace of every folder",
    "tests/support/visible.h": "opens every folder to what tests share",
}

# Pages that the program writes: their lines are as long as a key's description.
GENERATED_PAGES = ["docs/config.md"]

MAX_FILE_LINES = 500
MAX_README_LINES = 199
MAX_CODE_COLUMNS = 120
MAX_DOCS_COLUMNS = 110
MIN_COMMENT_PERCENT = 30.0
