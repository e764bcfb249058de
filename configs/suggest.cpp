#include "configs/suggest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

namespace troupe::configs {

int edit_distance(std::string_view a, std::string_view b) {
  const std::size_t n = a.size(), m = b.size();
  std::vector<std::vector<int>> d(n + 1, std::vector<int>(m + 1));
  for (std::size_t i = 0; i <= n; ++i) d[i][0] = static_cast<int>(i);
  for (std::size_t j = 0; j <= m; ++j) d[0][j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= n; ++i) {
    for (std::size_t j = 1; j <= m; ++j) {
      const int change = a[i - 1] == b[j - 1] ? 0 : 1;
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + change});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[n][m];
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
  const int limit = std::min<int>(name.size() > 10 ? 3 : 2, static_cast<int>(name.size()) - 1);
  std::string best;
  int best_distance = limit + 1;
  for (const std::string& candidate : candidates) {
    const int distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

namespace {

/// What counts when names of recipes and runs are compared: "quickstart:sft" and "recipes/quickstart_sft.yaml" are one.
std::string stem_of(std::string_view name) {
  name.remove_prefix(name.rfind('/') + 1);  // npos + 1 is 0
  if (name.ends_with(".yaml")) name.remove_suffix(5);
  std::string stem(name);
  std::replace(stem.begin(), stem.end(), ':', '_');
  return stem;
}

}  // namespace

std::vector<std::string> nearest_first(std::string_view name, std::vector<std::string> candidates) {
  const std::string wanted = stem_of(name);
  const auto rank = [&wanted](const std::string& candidate) {
    const std::string stem = stem_of(candidate);
    const bool begins =
        std::min(wanted.size(), stem.size()) >= 3 && (stem.starts_with(wanted) || wanted.starts_with(stem));
    return std::pair{begins ? 0 : 1, edit_distance(wanted, stem)};
  };
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&rank](const std::string& a, const std::string& b) { return rank(a) < rank(b); });
  return candidates;
}

std::string list_nearest_first(const std::string& heading, std::string_view name, std::vector<std::string> names) {
  return fmt::format("{}, nearest first:\n        {}", heading,
                     fmt::join(nearest_first(name, std::move(names)), "\n        "));
}

std::string suggest_key(std::string_view typed, const StructSpec& map) {
  std::string name(typed);  // keys have no capitals
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  std::vector<std::string> names;
  for (const FieldSpec& field : map.fields) names.push_back(field.name);
  if (name != typed && map.find(name) != nullptr) return name;
  if (std::string near = nearest_name(name, names); !near.empty()) return near;
  if (const auto synonym = find_synonym(name)) return std::string(synonym->path);
  for (const SpecEntry& entry : job_spec_entries()) {
    if (entry.field->name == name) return entry.path;
  }
  return {};
}

std::string key_hint(std::string_view name, const StructSpec& map) {
  const std::string meant = suggest_key(name, map);
  if (meant.empty()) return {};
  const auto synonym = find_synonym(name);
  const bool explained = synonym && synonym->path == meant && !synonym->note.empty();
  return fmt::format("did you mean '{}'?{}{}", meant, explained ? " " : "", explained ? synonym->note : "");
}

const std::vector<Tombstone>& tombstones() {
  static const std::vector<Tombstone> table = {
      // RLinf's names, so that its users are told instead of guessing
      {"actor.micro_batch_size", "training.micro_batch_size", "RLinf"},
      {"actor.global_batch_size", "training.global_batch_size", "RLinf"},
      {"actor.seed", "job.seed", "RLinf"},
      {"actor.optim.lr", "optimizer.lr", "RLinf"},
      {"actor.optim.eps", "optimizer.eps", "RLinf"},
      {"actor.optim.adam_eps", "optimizer.eps", "RLinf"},
      {"actor.optim.adam_beta1", "optimizer.betas", "RLinf"},
      {"actor.optim.adam_beta2", "optimizer.betas", "RLinf"},
      {"actor.optim.weight_decay", "optimizer.weight_decay", "RLinf"},
      {"actor.optim.clip_grad", "training.clip_grad_norm", "RLinf"},
      {"actor.optim.lr_scheduler", "lr_scheduler.name", "RLinf"},
      {"actor.optim.total_training_steps", "lr_scheduler.total_steps", "RLinf"},
      {"actor.fsdp_config.sharding_strategy", "parallelism.data_parallel_shard_degree", "RLinf"},
      {"actor.model", "model", "RLinf"},
      {"runner.max_steps", "training.steps", "RLinf"},
      {"runner.save_interval", "checkpoint.interval", "RLinf"},
      {"runner.val_check_interval", "eval.every", "RLinf"},
      {"runner.logger.log_path", "job.run_root", "RLinf"},
      {"runner.logger.experiment_name", "job.name", "RLinf"},
      {"optim.lr", "optimizer.lr", "RLinf"},
      {"optim.eps", "optimizer.eps", "RLinf"},
      {"optim.betas", "optimizer.betas", "RLinf"},
      {"optim.weight_decay", "optimizer.weight_decay", "RLinf"},
      {"optim.clip_grad", "training.clip_grad_norm", "RLinf"},
      {"data.train_data_paths", "data.sets", "RLinf"},
      {"cluster.component_placement.actor", "cluster.component_placement.learner", "RLinf"},
      // datasets are a list
      {"data.path", "data.sets", "of one dataset"},
      {"data.paths", "data.sets", "of several datasets"},
      // names of drafts of this format
      {"cluster.nodes", "cluster.num_nodes", "version 1"},
      {"cluster.placement", "cluster.component_placement", "version 1"},
      {"components", "cluster.component_placement", "version 1"},
      {"seed", "job.seed", "version 1"},
      {"training.max_steps", "training.steps", "version 1"},
      {"training.clip_grad", "training.clip_grad_norm", "version 1"},
      {"checkpoint.every", "checkpoint.interval", "version 1"},
      {"data.max_bad_samples", "data.max_bad_fraction", "version 1"},
  };
  return table;
}

std::optional<Tombstone> find_tombstone(std::string_view path) {
  for (const Tombstone& tombstone : tombstones()) {
    if (tombstone.old_path == path) return tombstone;
  }
  return std::nullopt;
}

}  // namespace troupe::configs
