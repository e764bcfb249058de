// The command line: parses and hands over. The only file that includes CLI11.
#include <CLI/CLI.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "app/commands.h"
#include "app/signals.h"
#include "app/version.h"
#include "configs/overrides.h"
#include "configs/suggest.h"
#include "workers/node/parent_death.h"

namespace {

using namespace troupe;

const std::vector<std::string> kVerbs = {"run", "plan", "node", "scale", "status", "verify", "doctor", "config", "export"};

/// "pool=N" as `troupe scale` takes it.
bool parse_scale(const std::vector<std::string>& words, ScaleOptions& scale) {
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) {
      scale.run = word;
      continue;
    }
    scale.pool = word.substr(0, equals);
    char* end = nullptr;
    scale.target = std::strtoll(word.c_str() + equals + 1, &end, 10);
    if (*end != 0 || end == word.c_str() + equals + 1) return false;
  }
  return !scale.pool.empty();
}

int unknown_verb(const std::string& word) {
  const std::string near = nearest_name(word, kVerbs);
  fmt::print(stderr, "troupe: unknown command '{}'{}\n", word, near.empty() ? "" : fmt::format("; did you mean '{}'?", near));
  fmt::print(stderr, "commands: {}\n", fmt::join(kVerbs, ", "));
  return kUsage;
}

struct CommandLine {
  CLI::App app{"Troupe: fine-tunes world-action models on actors that survive"};
  RunOptions run;
  PlanOptions plan;
  NodeOptions node;
  HostOptions host;
  StatusOptions status;
  ScaleOptions scale;
  std::vector<std::string> scale_words;
  VerifyOptions verify;
  ExportOptions exported;
  ConfigOptions config;
  DoctorOptions doctor;

  CommandLine() {
    app.set_version_flag("--version", std::string("troupe ") + kTroupeVersion);
    app.require_subcommand(1);
    add_jobs();
    add_live();
    add_files();
    add_host();
  }

  void add_jobs() {
    auto* c = app.add_subcommand("run", "plan a job, start it and see it through");
    c->add_option("job", run.job, "job file, or an embedded recipe such as quickstart:sft")->required();
    c->add_option("--resume", run.resume, "auto: continue the newest unfinished run of this name; never: start anew");
    c->add_option("--listen", run.listen, "host:port on which further nodes may join");
    c->add_option("--token-file", run.token_file, "where --listen writes the file that a joining node needs (default: RUN/token)");
    c->add_flag("--dry-run", run.dry_run, "check and plan only");
    auto* p = app.add_subcommand("plan", "show who would run where and what it would take");
    p->add_option("job", plan.job, "job file or embedded recipe")->required();
    p->add_option("--pretend", plan.pretend, "plan for this cluster instead of this machine, such as 8xH200");
    p->add_flag("--json", plan.json, "canonical JSON instead of a table");
    p->add_flag("--show-config", plan.show_config, "print the resolved configuration too");
    auto* f = app.add_subcommand("config", "show a job's resolved configuration, the schema, or the manual of keys");
    f->add_option("job", config.job, "job file or embedded recipe");
    f->add_flag("--schema", config.schema, "JSON Schema for editors");
    f->add_flag("--markdown", config.markdown, "docs/config.md");
  }

  void add_live() {
    auto* n = app.add_subcommand("node", "join a running job as a further node");
    n->add_option("--controller", node.controller, "address that `troupe run --listen` printed (default: the token's)");
    n->add_option("--token-file", node.token_file, "file that `troupe run --listen` wrote")->required();
    n->add_option("--name", node.name, "name of this node (default: host name)");
    n->add_option("--join-timeout", node.join_timeout_s, "seconds until a controller that does not let this node in is given up (default: 60)")
        ->check(CLI::Range(0.5, 86400.0));
    auto* s = app.add_subcommand("status", "what runs where, and how fast");
    s->add_option("run", status.run, "run directory or job name (default: the latest)");
    s->add_option("--run-root", status.run_root, "folder of run directories");
    s->add_flag("--json", status.json, "as JSON");
    s->add_flag("--watch", status.watch, "again every second until the job ends");
    s->add_flag("--stop", status.stop, "stop the job after a checkpoint");
    s->add_flag("--now", status.now, "with --stop: without waiting");
    auto* e = app.add_subcommand("scale", "change the size of a pool while the job runs: decoder=8");
    e->add_option("words", scale_words, "[RUN] pool=N")->required();
    e->add_option("--run-root", scale.run_root, "folder of run directories");
    e->add_flag("--dry-run", scale.dry_run, "show the change only");
  }

  void add_files() {
    auto* v = app.add_subcommand("verify", "check a run's checkpoints, and that every sample was trained exactly once");
    v->add_option("run", verify.run, "run directory or job name (default: the latest)");
    v->add_option("--run-root", verify.run_root, "folder of run directories");
    auto* x = app.add_subcommand("export", "write a checkpoint's weights for others");
    x->add_option("source", exported.source, "run directory, job name, or a checkpoint's folder")->required();
    x->add_option("--format", exported.format, "safetensors")->check(CLI::IsMember({"safetensors"}));
    x->add_option("--out", exported.out, "folder to write")->required();
    x->add_option("--shard-size", exported.shard_bytes, "largest file in bytes")->check(CLI::PositiveNumber);
    x->add_option("--run-root", exported.run_root, "folder of run directories");
    auto* d = app.add_subcommand("doctor", "check this machine: cores, memory, libraries, codecs, loopback");
    d->add_flag("--markdown", doctor.markdown, "as a table to paste");
  }

  void add_host() {
    auto* h = app.add_subcommand("host", "")->group("");
    h->add_option("--actor", host.actor)->required();
    h->add_option("--role", host.role)->required();
    h->add_option("--incarnation", host.incarnation)->required();
    h->add_option("--node", host.node_endpoint)->required();
    h->add_option("--config", host.config)->required();
    h->add_option("--plan", host.plan)->required();
    h->add_option("--run-dir", host.run_dir)->required();
    h->add_option("--runtime-dir", host.runtime_dir)->required();
    h->add_option("--data-host", host.data_host);
  }

  int dispatch() {
    if (app.got_subcommand("run")) return run_command(run);
    if (app.got_subcommand("plan")) return plan_command(plan);
    if (app.got_subcommand("node")) return node_command(node);
    if (app.got_subcommand("host")) return host_command(host);
    if (app.got_subcommand("status")) return status_command(status);
    if (app.got_subcommand("verify")) return verify_command(verify);
    if (app.got_subcommand("export")) return export_command(exported);
    if (app.got_subcommand("config")) return config_command(config);
    if (app.got_subcommand("doctor")) return doctor_command(doctor);
    if (!parse_scale(scale_words, scale)) {
      fmt::print(stderr, "troupe scale: expected pool=N, such as decoder=8, got '{}'\n", fmt::join(scale_words, " "));
      return kUsage;
    }
    return scale_command(scale);
  }
};

}  // namespace

int main(int argc, char** argv) {
  die_with_parent();
  block_signals();
  std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && !words[0].starts_with("-") && words[0] != "host" &&
      std::find(kVerbs.begin(), kVerbs.end(), words[0]) == kVerbs.end()) {
    return unknown_verb(words[0]);
  }
  CommandLine line;
  // Overrides (a.b=c, --a.b=c, ~a.b) belong to the job, not to the command line.
  const bool takes_overrides = !words.empty() && (words[0] == "run" || words[0] == "plan" || words[0] == "config");
  if (takes_overrides) line.run.overrides = line.plan.overrides = line.config.overrides = split_overrides(words);
  std::reverse(words.begin(), words.end());   // CLI11 takes them last first
  try {
    line.app.parse(words);
  } catch (const CLI::ParseError& e) {
    const int code = line.app.exit(e);
    return code == 0 ? kOk : kUsage;
  }
  return line.dispatch();
}
