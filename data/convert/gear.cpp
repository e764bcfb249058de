#include "data/convert/gear.h"

#include <fmt/format.h>

#include <filesystem>

#include "data/convert/finished_file.h"
#include "data/convert/metadata.h"
#include "data/convert/quantiles.h"
#include "data/lerobot/modality.h"
#include "data/statistics/table_statistics.h"

namespace troupe::data {

namespace {

constexpr std::int64_t kHorizon = 24;  // GEAR's

JsonDoc statistics_json(const FeatureStatistics& s) {
  return {{"mean", s.mean}, {"std", s.std}, {"min", s.min}, {"max", s.max}, {"q01", s.q01}, {"q99", s.q99}};
}

/// {stat: [[step 0], [step 1], ...]}
JsonDoc steps_json(const std::vector<FeatureStatistics>& steps) {
  JsonDoc out = JsonDoc::object();
  for (const FeatureStatistics& s : steps) {
    for (const auto& [stat, values] : statistics_json(s).items()) out[stat].push_back(values);
  }
  return out;
}

bool gear_column(const LerobotFeature& f) {
  return f.is_vector() && (f.name.starts_with("observation.state") || f.name == "action" ||
                           f.name.starts_with("action.") || f.name == "timestamp");
}

JsonDoc modality_json(const Modality& modality) {
  JsonDoc out = JsonDoc::object();
  const auto vectors = [](const std::vector<VectorKey>& keys) {
    JsonDoc section = JsonDoc::object();
    for (const VectorKey& k : keys) section[k.name] = {{"start", k.start}, {"end", k.end}, {"original_key", k.column}};
    return section;
  };
  const auto columns = [](const std::vector<NamedColumn>& keys) {
    JsonDoc section = JsonDoc::object();
    for (const NamedColumn& k : keys) section[k.name] = {{"original_key", k.column}};
    return section;
  };
  out["state"] = vectors(modality.state);
  out["action"] = vectors(modality.action);
  out["video"] = columns(modality.video);
  out["annotation"] = columns(modality.annotation);
  if (modality.annotation.empty()) out["annotation"]["task"] = {{"original_key", "task_index"}};
  return out;
}

/// Action keys with a state of their name.
std::vector<std::pair<std::string, WantedRelative>> relative_keys(const Modality& modality) {
  std::vector<std::pair<std::string, WantedRelative>> out;
  for (const VectorKey& action : modality.action) {
    if (action.name.find("gripper") != std::string::npos) continue;
    for (const VectorKey& state : modality.state) {
      if (state.name == action.name && state.width() == action.width()) out.push_back({action.name, {action, state}});
    }
  }
  return out;
}

}  // namespace

Result<void> write_gear_metadata(const ConvertContext& context, const JsonDoc& sum, std::vector<std::string>& notes) {
  const DatasetSource& source = context.sources[0];
  const std::string meta = context.out + "/meta/";
  TROUPE_ASSIGN(const Modality modality, read_modality(source.root, source.facts));
  const auto write_unless_carried = [&](const std::string& name, const JsonDoc& json) -> Result<void> {
    if (!std::filesystem::exists(source.root + "/meta/" + name)) return write_finished(meta + name, json.dump(4));
    notes.push_back(fmt::format("meta/{} is that of {}", name, source.root));
    return {};
  };
  TROUPE_TRY(write_unless_carried("modality.json", modality_json(modality)));
  TROUPE_TRY(write_unless_carried("embodiment.json", {{"robot_type", context.request.embodiment_tag},
                                                      {"embodiment_tag", context.request.embodiment_tag}}));
  StatisticsPlan plan{
      .columns = {}, .relative = {}, .horizon = kHorizon, .per_step = true, .threads = context.request.jobs};
  for (const LerobotFeature& f : source.facts.features) {
    if (gear_column(f)) plan.columns.push_back({f.name, static_cast<std::size_t>(f.shape[0]), f.dtype == "float32"});
  }
  const auto relative = relative_keys(modality);
  for (const auto& [name, wanted] : relative) plan.relative.push_back(wanted);
  TROUPE_ASSIGN(const TableStatistics found, table_statistics(tables_of(context), plan));

  JsonDoc stats = sum;
  for (std::size_t c = 0; c < plan.columns.size(); ++c)
    stats[plan.columns[c].name].update(statistics_json(found.columns[c]));
  add_quantiles(context, stats, notes);
  TROUPE_TRY(write_finished(meta + "stats.json", stats.dump(4)));
  if (relative.empty()) {
    notes.push_back("no action key has a state key of its name: there are no statistics of relative actions");
    return {};
  }
  JsonDoc pooled = JsonDoc::object(), steps = JsonDoc::object();
  for (std::size_t r = 0; r < relative.size(); ++r) {
    if (found.relative[r].pooled.width() == 0) continue;
    pooled[relative[r].first] = statistics_json(found.relative[r].pooled);
    steps[relative[r].first] = steps_json(found.relative[r].steps);
  }
  TROUPE_TRY(write_finished(meta + "relative_stats_dreamzero.json", pooled.dump(4)));
  return write_finished(meta + "relative_horizon_stats_dreamzero.json", steps.dump(4));
}

}  // namespace troupe::data
