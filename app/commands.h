#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workers/inference/policy/policy_options.h"

namespace troupe {

/// Exit codes of every command (ux.md 1d).
enum ExitCode : int {
  kOk = 0,
  kNotRunning = 1,
  kUsage = 2,
  kInfeasible = 3,
  kFailed = 4,
  kDataProblem = 6,
  kUnhealthy = 8,
  kInterrupted = 130
};

/// `troupe run JOB [k=v ...]`
struct RunOptions {
  std::string job;
  std::vector<std::string> overrides;
  std::string resume = "";  ///< "", "auto" or "never"
  std::string listen;       ///< "host:port" for further nodes; empty: this machine only
  std::string token_file;   ///< where `--listen` writes what a node needs; default: token in the run directory
  bool dry_run = false;
};
int run_command(const RunOptions& options);

/// `troupe plan JOB [k=v ...]`
struct PlanOptions {
  std::string job;
  std::vector<std::string> overrides;
  std::string pretend;
  bool json = false;
  bool show_config = false;
};
int plan_command(const PlanOptions& options);

/// `troupe node --controller ADDR --token-file F`
struct NodeOptions {
  std::string controller;
  std::string token_file;
  std::string name;
  double join_timeout_s = 60;  ///< how long the controller may take to let this node in
};
int node_command(const NodeOptions& options);

/// The internal command that a node starts for each actor with a process of its own.
struct HostOptions {
  std::string actor, role, node_endpoint, config, plan, run_dir, runtime_dir, data_host;
  std::int64_t incarnation = 0;
};
int host_command(const HostOptions& options);

/// `troupe status [RUN]`, `troupe scale [RUN] pool=N`
struct StatusOptions {
  std::string run, run_root = "runs";
  bool json = false, watch = false, stop = false, now = false;
};
int status_command(const StatusOptions& options);
struct ScaleOptions {
  std::string run, run_root = "runs", pool;
  std::int64_t target = 0;
  bool dry_run = false;
};
int scale_command(const ScaleOptions& options);

/// `troupe verify RUN`
struct VerifyOptions {
  std::string run, run_root = "runs";
};
int verify_command(const VerifyOptions& options);

/// `troupe export RUN_OR_CKPT --format safetensors|gear|lora --out DIR`
struct ExportOptions {
  std::string source, run_root = "runs", format = "safetensors", out;
  std::string dtype = "fp32";  ///< fp32 or bf16
  bool merge_lora = false;     ///< adapters folded into the weights they adapt
  std::int64_t shard_bytes = 5'000'000'000;
};
int export_command(const ExportOptions& options);

/// `troupe convert weights SOURCE --to troupe|wan|dreamzero --out DIR`
struct ConvertOptions {
  std::string source, out, to = "troupe";
  std::string component = "auto";  ///< auto, dit, text_encoder, image_encoder, vae: what a file without prefixes holds
  std::string model;               ///< 5b, 14b, or a job file: whose keys are expected; empty: by the shapes found
  std::string dtype = "keep";      ///< keep, fp32, bf16
  bool merge_lora = false, check = false;
  double lora_scale = 1.0;  ///< alpha / rank, for --merge-lora
  std::int64_t shard_bytes = 5'000'000'000;
};
int convert_command(const ConvertOptions& options);

/// `troupe convert dataset SOURCE --to v3.0|v2.1 --out DIR` (data.md 1.12)
struct ConvertDatasetOptions {
  std::vector<std::string> sources;            ///< datasets; several are merged
  std::string out, to = "v3.0";                ///< v3.0 or v2.1
  std::int64_t episode_size = 1000;            ///< episodes per data or video file
  std::string shard_size = "1GB";              ///< bytes per data or video file
  double data_file_mb = 0, video_file_mb = 0;  ///< MiB; above 0 they take shard_size's place
  std::string video_mode = "auto";             ///< copy, reencode or auto
  std::int64_t gop = 0, crf = 23;              ///< re-encode with a key frame every gop pictures; 0: as they are
  std::string codec = "h264", preset = "medium", scale, pix_fmt = "yuv420p";  ///< of a re-encode; scale: WxH
  std::string compression = "zstd";                                           ///< zstd, snappy or none
  std::string row_group = "episode";                                          ///< episode, or rows per group
  std::int64_t jobs = 0;                                                      ///< threads; 0: one a core
  bool resume = false, strict = false, index = true, gear = false;
  std::string verify = "counts";        ///< none, counts or full
  std::string embodiment_tag = "xdof";  ///< of --gear
};
int convert_dataset_command(const ConvertDatasetOptions& options);

/// `troupe record ENV --out DIR [key=value ...]`
struct RecordOptions {
  std::string env, out;
  std::vector<std::string> words;  ///< options of the environment: max_episode_steps=50, sparse=true
  std::int64_t episodes = 200, seed = 1;
  std::string version = "v3.0";      ///< v3.0 or v2.1
  std::string keep = "successes";    ///< successes or all
  std::vector<std::string> cameras;  ///< of the environment; each becomes a video
};
int record_command(const RecordOptions& options);

/// `troupe stats DATA`
struct StatsOptions {
  std::string data, embodiment;  ///< folder or owner/name; name or YAML file of an embodiment, empty: all columns
  std::string html, json;        ///< files to write; json "-": stdout
  bool write_metadata = false;   ///< meta/stats.json, relative statistics, metadata.json beside the dataset
  std::string out;               ///< folder for --write-metadata; empty: the dataset's meta/
  std::string verify = "index";  ///< index, or full: decode every picture
  std::int64_t workers = 0, horizon = 24;
  std::vector<std::string>
      relative_keys;  ///< empty: the embodiment's, else every action key with a state of its name but grippers
};
int stats_command(const StatsOptions& options);

/// `troupe encode JOB [k=v ...]`: fills data.features.cache
struct EncodeOptions {
  std::string job;
  std::vector<std::string> overrides;
  std::int64_t max_samples = 0;  ///< 0: every training and evaluation window once
  bool check = false;            ///< only say what is there and what is missing
};
int encode_command(const EncodeOptions& options);

/// `troupe bench loader JOB_OR_DATASET [k=v ...]`
struct BenchOptions {
  std::string what;  ///< "loader"
  std::string job;   ///< job file, recipe, or a dataset's folder
  std::vector<std::string> overrides;
  std::int64_t samples = 256, decoders = 0;  ///< decoders 0: one a core
  double consume_rate = 0;                   ///< samples/s taken; 0: as fast as they come
  bool json = false;
};
int bench_command(const BenchOptions& options);

/// `troupe eval CKPT --open-loop`, `troupe eval CKPT [--env ID] --episodes N [--compare OTHER]`
struct EvalOptions {
  std::string checkpoint, run_root = "runs";
  bool open_loop = false, json = false;
  std::string data;  ///< dataset folder; empty: the job's
  std::vector<std::int64_t> episodes;
  std::int64_t windows = 16;  ///< windows evaluated at most
  std::string out;      ///< folder of eval.json, open_loop.png, results.md, videos; empty: eval/ in the run directory
  std::string env;      ///< environment to play; empty: the job's, where its kind is rl
  std::string compare;  ///< another checkpoint that plays the same seeds
  std::int64_t seed = -1;    ///< of the first episode; -1: the job's eval.seed
  std::int64_t videos = -1;  ///< failures that are filmed; -1: the job's eval.videos
  PolicyOptions policy;
};
int eval_command(const EvalOptions& options);

/// `troupe serve CKPT --protocol dreamzero|openpi|groot`
struct ServeOptions {
  std::string checkpoint, run_root = "runs";
  std::string protocol = "dreamzero";
  std::string bind;        ///< host:port; empty: 127.0.0.1:8000, groot 127.0.0.1:5555
  std::string token_file;  ///< bearer token (api_token with groot); required unless bound to loopback
  std::string action_key;  ///< "": the protocol's form; array: bare ndarray; actions: map with that key; keys: action.*
  std::int64_t max_sessions = 64, queue = 64;
  std::int64_t max_request_bytes = 64 << 20;
  double request_timeout_s = 60, idle_timeout_s = 600;
  bool allow_kill = false, once_selftest = false;
  PolicyOptions policy;
};
int serve_command(const ServeOptions& options);

/// `troupe config [JOB] --schema | --markdown`
struct ConfigOptions {
  std::string job;
  std::vector<std::string> overrides;
  bool schema = false, markdown = false;
};
int config_command(const ConfigOptions& options);

/// `troupe doctor`
struct DoctorOptions {
  bool markdown = false;
  std::string model;  ///< 5b, 14b, a job file or a checkpoint folder: parameter counts and keys instead of the machine
};
int doctor_command(const DoctorOptions& options);

}  // namespace troupe
