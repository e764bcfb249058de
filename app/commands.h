#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workers/checkpoint/weight_set.h"
#include "workers/inference/policy/policy_options.h"
#include "workers/record/record_demonstrations.h"

namespace troupe::app {

/// Exit codes of every command (docs/commands.md). Every command below runs to its end on the calling thread,
/// prints for people on stdout, errors on stderr, and returns one of these.
enum ExitCode : int {
  kOk = 0,
  /// status, scale: no controller answers.
  kNotRunning = 1,
  /// Wrong arguments, configuration or input.
  kUsage = 2,
  /// No plan on these machines.
  kInfeasible = 3,
  /// The command or the job failed.
  kFailed = 4,
  /// Damaged or refused files of data.
  kDataProblem = 6,
  /// doctor: a check failed; encode --check: something is missing.
  kUnhealthy = 8,
  /// Stopped by its scheduler (SIGTERM, SIGUSR1) with a checkpoint; it may start the job again.
  kPreempted = 75,
  /// Ended by a signal of a person.
  kInterrupted = 130
};

/// `troupe run JOB [k=v ...]`
struct RunOptions {
  std::string job;
  std::vector<std::string> overrides;
  /// "", "auto", "never" or a run (docs/run-directory.md#resume).
  std::string resume = "";
  /// "host:port" for further nodes; empty: this machine only.
  std::string listen;
  /// Where `--listen` writes what a node needs; empty: `token` in the run directory.
  std::string token_file;
  bool dry_run = false;
  /// "10:13": steps to trace; empty: none.
  std::string profile;
};
int run_command(const RunOptions& options);

/// `troupe plan JOB [k=v ...]`
struct PlanOptions {
  std::string job;
  std::vector<std::string> overrides;
  std::string pretend;
  bool json = false;
  bool show_config = false;
  bool schedule = false;
  std::string timeline;
};
int plan_command(const PlanOptions& options);

/// `troupe keygen NAME --role node|operator|viewer`
struct KeygenOptions {
  std::string name, role, out = ".";
};
int keygen_command(const KeygenOptions& options);

/// `troupe node --controller ADDR --token-file F`, or with `--key` in place of the token.
struct NodeOptions {
  std::string controller;
  std::string token_file;
  std::string key;
  std::string name;
  /// How long the controller may take to let this node in.
  double join_timeout_s = 60;
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
  /// Of a run elsewhere: its controller's address, and the file of a key that it lists.
  std::string controller, key;
  bool json = false, watch = false, stop = false, now = false;
};
int status_command(const StatusOptions& options);
struct ScaleOptions {
  std::string run, run_root = "runs", pool;
  /// As in StatusOptions.
  std::string controller, key;
  std::int64_t target = 0;
  bool dry_run = false;
};
int scale_command(const ScaleOptions& options);

/// `troupe runs [NAME]`
struct RunsOptions {
  std::string name, run_root = "runs";
  /// List what may be removed, with `yes` remove it: all but the newest `keep` of each name, live runs and `latest`.
  bool prune = false, yes = false;
  std::int64_t keep = 1;
};
int runs_command(const RunsOptions& options);

/// `troupe compare RUN RUN...`
struct CompareOptions {
  std::vector<std::string> runs;
  std::string run_root = "runs";
  /// Page to write; empty: compare.html in run_root.
  std::string out;
};
int compare_command(const CompareOptions& options);

/// `troupe sweep JOB --seeds 0..4 [key=a,b ...]`
struct SweepCommandOptions {
  std::string job;
  /// Those with several values are swept.
  std::vector<std::string> overrides;
  /// "0..4", "1,4,7"
  std::string seeds;
  /// Runs at a time; episodes each policy plays at the end, 0: none.
  std::int64_t at_once = 1, episodes = 0;
  /// Folder of the table, the picture, the page and logs; empty: NAME-sweep in the job's run_root.
  std::string out;
};
int sweep_command(const SweepCommandOptions& options);

/// `troupe verify RUN`
struct VerifyOptions {
  std::string run, run_root = "runs";
};
int verify_command(const VerifyOptions& options);

/// `troupe export RUN_OR_CKPT --format safetensors|gear|lora --out DIR`
struct ExportOptions {
  std::string source, run_root = "runs", format = "safetensors", out;
  /// Of floating point tensors: fp32 or bf16.
  std::string dtype = "fp32";
  WeightSet weights = WeightSet::model;
  /// Adapters folded into the weights they adapt.
  bool merge_lora = false;
  std::int64_t shard_bytes = 5'000'000'000;
};
int export_command(const ExportOptions& options);

/// `troupe convert weights SOURCE --to troupe|wan|dreamzero --out DIR`
struct ConvertOptions {
  std::string source, out, to = "troupe";
  /// Auto, dit, text_encoder, image_encoder, vae: what a file without prefixes holds.
  std::string component = "auto";
  /// 5b, 14b, or a job file: whose keys are expected; empty: by the shapes found.
  std::string model;
  /// Of floating point tensors: keep, fp32 or bf16.
  std::string dtype = "keep";
  bool merge_lora = false, check = false;
  /// alpha / rank, for --merge-lora.
  double lora_scale = 1.0;
  std::int64_t shard_bytes = 5'000'000'000;
};
int convert_command(const ConvertOptions& options);

/// `troupe convert dataset SOURCE --to v3.0|v2.1 --out DIR` (docs/dataset-convert.md)
struct ConvertDatasetOptions {
  /// Folders of datasets; several are merged.
  std::vector<std::string> sources;
  /// `to`: version of the LeRobot format, v3.0 or v2.1.
  std::string out, to = "v3.0";
  /// Those taken: numbers and ranges, "3,8..11"; empty: all.
  std::string episodes;
  /// Cameras that the result does not have.
  std::vector<std::string> drop_cameras;
  /// Episodes per data or video file.
  std::int64_t episode_size = 1000;
  /// Bytes per data or video file.
  std::string shard_size = "1GB";
  /// MiB; above 0 they take the place of shard_size.
  double data_file_mb = 0, video_file_mb = 0;
  /// Videos: copy, reencode or auto (copy where the codec allows it).
  std::string video_mode = "auto";
  /// Above 0: re-encode with a key frame every gop frames, at quality crf (0 best, 51 worst); 0: as they are.
  std::int64_t gop = 0, crf = 23;
  /// Of a re-encode; scale: WxH pixels.
  std::string codec = "h264", preset = "medium", scale, pix_fmt = "yuv420p";
  /// Of Parquet columns: zstd, snappy or none.
  std::string compression = "zstd";
  /// "episode": one row group an episode; or a number of rows per group.
  std::string row_group = "episode";
  /// Threads; 0: one a core.
  std::int64_t jobs = 0;
  bool resume = false, strict = false, index = true, gear = false;
  /// Mend damaged sources on the way; leave out episodes that cannot be mended.
  bool repair = false, skip_bad = false;
  /// How the result is checked: none, counts (rows and packets) or full (every value, packet and frame).
  std::string verify = "counts";
  /// Embodiment tag that --gear writes.
  std::string embodiment_tag = "xdof";
};
int convert_dataset_command(const ConvertDatasetOptions& options);

/// `troupe record ENV --out DIR [key=value ...]`
struct RecordOptions {
  std::string env, out;
  /// Options of the environment: max_episode_steps=50, sparse=true.
  std::vector<std::string> words;
  std::int64_t episodes = 200, seed = 1;
  /// Version of the LeRobot format: v3.0 or v2.1.
  std::string version = "v3.0";
  /// Which episodes are kept: successes or all.
  std::string keep = "successes";
  /// Cameras of the environment; each becomes a video.
  std::vector<std::string> cameras;
  /// Side of their frames, pixels.
  std::int64_t image_size = workers::kFrameSide;
};
int record_command(const RecordOptions& options);

/// `troupe env list`
struct EnvListOptions {
  bool json = false;
};
int env_list_command(const EnvListOptions& options);

/// `troupe env describe ID [key=value ...]`
struct EnvDescribeOptions {
  std::string id;
  /// Options of the environment: profile=pixel, max_episode_steps=50.
  std::vector<std::string> words;
  /// File to write (docs/env.md#env_specjson); empty: none.
  std::string out;
  bool json = false;
};
int env_describe_command(const EnvDescribeOptions& options);

/// `troupe init DATA --out DIR`, `troupe init --env ID --out DIR`
struct InitOptions {
  /// One of the two: a dataset's folder or owner/name, or an environment's id.
  std::string data, env;
  /// Folder of robot.yaml and job.yaml; files that are there stay.
  std::string out;
};
int init_command(const InitOptions& options);

/// `troupe stats DATA`
struct StatsOptions {
  /// `data`: folder or owner/name. `embodiment`: name or YAML file; empty: all columns.
  std::string data, embodiment;
  /// Files to write; json "-": stdout.
  std::string html, json;
  /// Write meta/stats.json, relative statistics and metadata.json beside the dataset.
  bool write_metadata = false;
  /// Folder for --write-metadata; empty: the dataset's meta/.
  std::string out;
  /// "index": files and tables; "full": decode every frame too.
  std::string verify = "index";
  std::int64_t workers = 0, horizon = 24;
  /// Action keys taken relative to the state. Empty: the embodiment's, else every action key with a state of its name
  /// but grippers.
  std::vector<std::string> relative_keys;
};
int stats_command(const StatsOptions& options);

/// `troupe encode JOB [k=v ...]`: fills data.features.cache
struct EncodeOptions {
  std::string job;
  std::vector<std::string> overrides;
  /// 0: every training and evaluation window once.
  std::int64_t max_samples = 0;
  /// Only say what is there and what is missing.
  bool check = false;
};
int encode_command(const EncodeOptions& options);

/// `troupe bench loader JOB_OR_DATASET [k=v ...]`
struct BenchOptions {
  /// "loader"
  std::string what;
  /// Job file, recipe, or a dataset's folder.
  std::string job;
  std::vector<std::string> overrides;
  /// Samples to make; decoders 0: one a core.
  std::int64_t samples = 256, decoders = 0;
  /// samples/s taken; 0: as fast as they come.
  double consume_rate = 0;
  bool json = false;
};
int bench_command(const BenchOptions& options);

/// `troupe eval CKPT --open-loop`, `troupe eval CKPT [--env ID] --episodes N [--compare OTHER]`
struct EvalOptions {
  std::string checkpoint, run_root = "runs";
  bool open_loop = false, json = false;
  /// Dataset folder; empty: the job's.
  std::string data;
  std::vector<std::int64_t> episodes;
  /// Windows evaluated at most.
  std::int64_t windows = 16;
  /// Folder of eval.json, open_loop.png, results.md, videos; empty: eval/ in the run directory.
  std::string out;
  /// Environment to play; empty: the job's, where its kind is rl.
  std::string env;
  /// Another checkpoint that plays the same seeds; empty: none.
  std::string compare;
  /// Seed of the first episode; -1: the job's eval.seed.
  std::int64_t seed = -1;
  /// Failures that become videos; -1: the job's eval.videos.
  std::int64_t videos = -1;
  /// What a robot's policy is told in every episode; empty: what the environment says.
  std::string instruction;
  PolicyOptions policy;
};
int eval_command(const EvalOptions& options);

/// `troupe serve CKPT --protocol dreamzero|openpi|groot`
struct ServeOptions {
  std::string checkpoint, run_root = "runs";
  std::string protocol = "dreamzero";
  /// host:port; empty: 127.0.0.1:8000, groot 127.0.0.1:5555.
  std::string bind;
  /// Bearer token (api_token with groot); required unless bound to loopback.
  std::string token_file;
  /// "": the protocol's form; array: bare ndarray; actions: map with that key; keys: action.*.
  std::string action_key;
  std::int64_t max_sessions = 64, queue = 64;
  /// Of one request. 0: 64 MiB; groot 12 MiB, because its socket reads a message before it can look for the token.
  std::int64_t max_request_bytes = 0;
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
  /// 5b, 14b, a job file or a checkpoint folder: parameter counts and keys instead of the machine.
  std::string model;
};
int doctor_command(const DoctorOptions& options);

}  // namespace troupe::app
