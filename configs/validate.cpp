#include "configs/validate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "base/ids.h"
#include "configs/host_environment.h"
#include "configs/placement_text.h"
#include "configs/port_range.h"
#include "configs/role_kind.h"
#include "configs/scalar.h"

namespace troupe::configs {

namespace {

bool is_role(const std::string& name) { return enum_value<RoleKind>(name).has_value(); }

std::string role_error(const std::string& name) {
  if (name == "actor") return "RLinf's 'actor' is called 'learner' here; write 'learner'";
  return fmt::format("'{}' is not a role; roles are {}", name, fmt::join(enum_names(RoleKind{}), ", "));
}

/// A host name, or an address other than "every address"; IPv6 in brackets.
bool is_host(const std::string& text) {
  const bool is_bracketed = text.size() > 2 && text.front() == '[' && text.back() == ']';
  const std::string inside = is_bracketed ? text.substr(1, text.size() - 2) : text;
  const auto fits = [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '-' ||
           (is_bracketed && c == ':');
  };
  return !inside.empty() && inside != "0.0.0.0" && inside != "::" && std::all_of(inside.begin(), inside.end(), fits);
}

void validate_node_groups(const ClusterConfig& cluster, Rules& rules) {
  std::set<std::string> labels;
  for (std::size_t i = 0; i < cluster.node_groups.size(); ++i) {
    const NodeGroupConfig& group = cluster.node_groups[i];
    const std::string path = fmt::format("cluster.node_groups[{}]", i);
    rules.require(group.label != "cluster" && group.label != "node", path + ".label",
                  fmt::format("label '{}' is reserved", group.label));
    rules.require(is_name(group.label), path + ".label",
                  fmt::format("'{}' is not a label; it must match {}", group.label, kNamePattern));
    rules.require(labels.insert(group.label).second, path + ".label",
                  fmt::format("label '{}' is used twice", group.label));
    for (const auto& [variable, value] : group.env) {
      rules.require(may_set_for_hosts(variable), path + ".env",
                    fmt::format("{} may not be set for host processes: it decides which code they load, or is no name "
                                "of a variable (docs/processes.md)",
                                variable));
    }
    const auto wrong = check_rank_list(group.node_ranks, cluster.num_nodes);
    rules.require(!wrong, path + ".node_ranks", wrong.value_or(""), {"cluster.num_nodes"});
  }
}

void validate_placement(const std::string& key, const PlacementConfig& placement, const ClusterConfig& cluster,
                        std::set<std::string>& placed, Rules& rules) {
  const std::string path = "cluster.component_placement." + key;
  const std::vector<std::string> roles = roles_of_key(key);
  for (const std::string& role : roles) {
    rules.require(is_role(role), path, role_error(role));
    rules.require(placed.insert(role).second, path, fmt::format("role '{}' is placed twice", role));
  }
  const bool has_learner = std::find(roles.begin(), roles.end(), RoleKind::learner) != roles.end();
  rules.require(roles.size() == 1 || !has_learner, path,
                "learner ranks keep their devices to themselves and cannot share one rule with other roles; give "
                "learner a line of its own");
  const auto wrong = check_placement_text(placement.placement);
  rules.require(!wrong, path, wrong.value_or(""), {}, path + ".placement");
  const auto is_group = [&](const NodeGroupConfig& group) { return group.label == placement.node_group; };
  const bool known = placement.node_group == "cluster" || placement.node_group == "node" ||
                     std::any_of(cluster.node_groups.begin(), cluster.node_groups.end(), is_group);
  rules.require(known, path + ".node_group",
                fmt::format("no node group is labelled '{}'; write cluster, node or a label of cluster.node_groups",
                            placement.node_group),
                {"cluster.node_groups"});
}

/// What is cached of frames is found again only when the same sample has the same pixels each time it is drawn.
void validate_features(const DataConfig& data, Rules& rules) {
  const ImageConfig& image = data.image;
  rules.require(
      data.features.cache.empty() || data.features.keep != "all" || !image.is_random(), "data.features.keep",
      fmt::format(
          "all keeps latents and image features, and training draws other pixels each time (data.image: crop {}, "
          "brightness {}, contrast {}, saturation {}, hue {}), so that none would be found again; write "
          "data.features.keep=text, or data.image.crop=1 and the four others 0",
          format_number(image.crop), format_number(image.brightness), format_number(image.contrast),
          format_number(image.saturation), format_number(image.hue)),
      {"data.image", "data.image.crop", "data.image.brightness", "data.image.contrast", "data.image.saturation",
       "data.image.hue", "data.features.cache"});
}

void validate_training(const JobConfig& job, Rules& rules) {
  const auto& betas = job.optimizer.betas;
  const auto in_range = [](double b) { return b >= 0 && b < 1; };
  rules.require(betas.size() == 2 && std::all_of(betas.begin(), betas.end(), in_range), "optimizer.betas",
                "wants two numbers in [0, 1)");
  const SophiaConfig& sophia = job.optimizer.sophia;
  rules.require(sophia.betas.size() == 2 && std::all_of(sophia.betas.begin(), sophia.betas.end(), in_range),
                "optimizer.sophia.betas", "wants two numbers in [0, 1)");
  rules.require(sophia.rho > 0, "optimizer.sophia.rho",
                "0 would follow no curvature; write a number above 0, such as "
                "0.04");
  const bool is_sophia = job.optimizer.name == "sophia";
  rules.require(!is_sophia || !trains_agent(job), "optimizer.name",
                "sophia estimates curvature from the flow-matching loss of DreamZero; this job trains a policy for an "
                "environment; write adamw",
                {"job.kind", "env.id"});
  rules.require(!is_sophia || job.optimizer.moments == "fp32", "optimizer.moments",
                "bf16 is for adamw; sophia keeps momentum and curvature in fp32", {"optimizer.name"});
  rules.require(job.ema.decay < 1, "ema.decay",
                "an average with decay 1 never moves from the first weights; write a number below 1, such as 0.9999, "
                "or 0 for no average");
  rules.require(!job.ema.publish || job.ema.decay > 0, "ema.publish",
                "no average is kept with ema.decay 0; write a decay such as 0.9999", {"ema.decay"});
  rules.require(!job.ema.publish || job.ema.decay == 0 || job.job.kind == JobKind::rl, "ema.publish",
                "nothing acts with a policy while this job trains; `troupe eval --weights ema` and `troupe serve "
                "--weights ema` take the average",
                {"job.kind"});
  rules.require(job.lr_scheduler.name != "cosine" || job.lr_scheduler.min_lr <= job.optimizer.lr, "lr_scheduler.min_lr",
                fmt::format("{} is above optimizer.lr {}", format_number(job.lr_scheduler.min_lr),
                            format_number(job.optimizer.lr)),
                {"optimizer.lr", "lr_scheduler.name"});
  const auto& counts = job.activation_checkpoint.counts;
  const std::int64_t blocks = job.model.dit.num_layers,
                     counted = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  rules.require(
      counts.empty() || (counts.size() == 4 && counted == blocks), "activation_checkpoint.counts",
      fmt::format("{} numbers for {} transformer blocks; 4 are expected, of the levels none, cheap, attention "
                  "and full, that add up to model.dit.num_layers {}",
                  counts.size(), counted, blocks),
      {"model.dit.num_layers"});
  rules.require(counts.empty() || job.activation_checkpoint.mode == "auto", "activation_checkpoint.counts",
                "is given beside a mode for all blocks; remove one of the two", {"activation_checkpoint.mode"});
  rules.require(job.parallelism.data_parallel_shard_degree != 0, "parallelism.data_parallel_shard_degree",
                "0 ranks cannot hold the parameters; write -1 for all learner ranks");
  const auto holds_out = [](const DataSetConfig& set) { return !set.eval_episodes.empty(); };
  const auto& sets = job.data.sets;
  const bool any_held_out = !job.data.eval_episodes.empty() || std::any_of(sets.begin(), sets.end(), holds_out);
  rules.require(job.job.kind == JobKind::rl || job.eval.every == 0 || any_held_out, "eval.every",
                "evaluation needs held-out episodes; name them in data.eval_episodes or set eval.every to 0",
                {"data.eval_episodes"});
  const std::string& best = job.checkpoint.keep_best;
  rules.require(
      !job.checkpoint.keeps_best() || (job.job.kind == JobKind::rl) == (best != "eval/loss"), "checkpoint.keep_best",
      fmt::format("is {}, which evaluations of kind {} do not measure; write {}", best, enum_name(job.job.kind),
                  job.job.kind == JobKind::rl ? "eval/success or eval/return" : "eval/loss"),
      {"job.kind"});
  rules.require(!job.checkpoint.keeps_best() || (job.eval.every > 0 && job.eval.every % job.checkpoint.interval == 0),
                "eval.every",
                fmt::format("is {}; with checkpoint.keep_best each evaluation needs a checkpoint: write a multiple of "
                            "checkpoint.interval, {}",
                            job.eval.every, job.checkpoint.interval),
                {"checkpoint.keep_best", "checkpoint.interval"});
  const bool open_loop = job.eval.open_loop.at_end;
  rules.require(!open_loop || !trains_agent(job), "eval.open_loop.at_end",
                "compares a world-action model with recordings; this job trains a policy for an environment, which "
                "plays episodes instead (eval.episodes)",
                {"job.kind", "env.id"});
  rules.require(!open_loop || trains_agent(job) || any_held_out, "eval.open_loop.at_end",
                "evaluation needs held-out episodes; name them in data.eval_episodes or set eval.open_loop.at_end to "
                "false",
                {"data.eval_episodes"});
  const auto& sinks = job.metrics.sinks;
  rules.require(std::set<std::string>(sinks.begin(), sinks.end()).size() == sinks.size(), "metrics.sinks",
                "names a sink twice");
}

}  // namespace

void Rules::require(bool holds, const std::string& path, const std::string& message,
                    std::initializer_list<const char*> also_reads, const std::string& position) {
  if (holds || is_bad(path)) return;
  for (const char* key : also_reads) {
    if (is_bad(key)) return;
  }
  const auto at = origins_.find(position.empty() ? path : position);
  errors_.add(at == origins_.end() ? Origin{} : at->second, path + ": " + message);
}

bool Rules::is_bad(const std::string& path) const {
  // a key is unusable, too, when the section or list it stands in was refused
  for (std::size_t end = path.size(); end != std::string::npos && end > 0; end = path.find_last_of(".[", end - 1)) {
    if (errors_.is_bad(path.substr(0, end))) return true;
  }
  return false;
}

void validate_cluster(const ClusterConfig& cluster, Rules& rules) {
  validate_node_groups(cluster, rules);
  std::set<std::string> placed;
  for (const auto& [key, placement] : cluster.component_placement)
    validate_placement(key, placement, cluster, placed, rules);
  for (const auto& [role, isolation] : cluster.isolation) {
    rules.require(is_role(role), "cluster.isolation." + role, role_error(role));
    rules.require((isolation != "inline" && isolation != "auto") || role == RoleKind::env, "cluster.isolation." + role,
                  fmt::format("{} is process or thread; only env may be inline or auto", role));
  }
  for (const auto& [role, elastic] : cluster.elastic) {
    const std::string path = "cluster.elastic." + role;
    rules.require(is_role(role), path, role_error(role));
    rules.require(
        !is_role(role) || (role != RoleKind::learner && role != RoleKind::evaluator && role != RoleKind::checkpointer),
        path, fmt::format("{} has a fixed size; decoder, encoder, env and rollout are elastic", role));
    rules.require(elastic.min <= elastic.max, path + ".min",
                  fmt::format("{} is above max {}", elastic.min, elastic.max));
  }
  rules.require(cluster.ports.empty() || parse_port_range(cluster.ports), "cluster.ports",
                fmt::format("'{}' is no range of ports, such as 7720-7799", cluster.ports));
  rules.require(cluster.advertise.empty() || is_host(cluster.advertise), "cluster.advertise",
                fmt::format("'{}' is no host that others can dial: a name or an address without a port, such as "
                            "trainer.example.org, 10.0.0.7 or [fd00::7]",
                            cluster.advertise));
  rules.require(cluster.restart.backoff_initial <= cluster.restart.backoff_max, "cluster.restart.backoff_initial_s",
                fmt::format("{} is above backoff_max_s {}", format_number(cluster.restart.backoff_initial.count()),
                            format_number(cluster.restart.backoff_max.count())),
                {"cluster.restart.backoff_max_s"});
}

void validate_job(const JobConfig& job, const OriginMap& origins, Diagnostics& errors) {
  Rules rules(origins, errors);
  rules.require(is_name(job.job.name), "job.name",
                fmt::format("'{}' is not a name; it must match {}", job.job.name, kNamePattern));
  rules.require(!job.job.run_root.empty(), "job.run_root", "is empty; name the folder that holds run directories");
  validate_cluster(job.cluster, rules);
  if (job.job.kind == JobKind::rl) {
    validate_rl(job, rules);
    if (learns_dreamzero(job)) validate_learning_dreamzero(job, rules);
  } else if (is_imitation(job)) {
    validate_imitation(job, rules);
  } else {
    validate_model(job.model, rules);
    validate_data(job.data, rules);
    validate_window(job.data, job.model, rules);
    validate_features(job.data, rules);
    validate_no_jitter(job.data.demonstration_jitter,
                       "is for policies that imitate (env.id); DreamZero's jitter is data.image.brightness, contrast, "
                       "saturation and hue",
                       rules);
    rules.require(job.env.frame_offsets.empty(), "env.frame_offsets",
                  "is set; fine-tuning sees frames of recordings at data.window.video_offsets: leave it out");
  }
  if (job.job.kind == JobKind::sft) {
    validate_no_reward(job.env.reward, "kind sft learns from demonstrations and reads no reward: leave env.reward out",
                       rules);
  }
  validate_training(job, rules);
}

}  // namespace troupe::configs
