#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// Exit codes of every command (ux.md 1d).
enum ExitCode : int { kOk = 0, kNotRunning = 1, kUsage = 2, kInfeasible = 3, kFailed = 4, kDataProblem = 6, kUnhealthy = 8, kInterrupted = 130 };

/// `troupe run JOB [k=v ...]`
struct RunOptions {
  std::string job;
  std::vector<std::string> overrides;
  std::string resume = "";        ///< "", "auto" or "never"
  std::string listen;             ///< "host:port" for further nodes; empty: this machine only
  std::string token_file;         ///< where `--listen` writes what a node needs; default: token in the run directory
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
  double join_timeout_s = 60;     ///< how long the controller may take to let this node in
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

/// `troupe export RUN_OR_CKPT --format safetensors --out DIR`
struct ExportOptions {
  std::string source, run_root = "runs", format = "safetensors", out;
  std::int64_t shard_bytes = 5'000'000'000;
};
int export_command(const ExportOptions& options);

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
};
int doctor_command(const DoctorOptions& options);

}  // namespace troupe
