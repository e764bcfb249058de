#include "data/convert/source_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "data/convert/write_files.h"
#include "data/health/dataset_keys.h"
#include "data/health/metadata_check.h"
#include "data/health/stated_cameras.h"
#include "data/health/statistics_check.h"

namespace troupe::data {

namespace {

bool holds(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// check_episode looks at these itself.
bool is_looked_at(const std::string& name) {
  return name == "frame_index" || name == "index" || name == "episode_index" || name == "timestamp";
}

}  // namespace

Result<SourceCheck> SourceCheck::make(const DatasetSource& source, bool merged) {
  auto keys = dataset_keys(*source.files, std::nullopt, {});
  if (!keys) return Error{Errc::data_loss, keys.error().message()};
  SourceCheck out;
  out.merged_ = merged;
  TROUPE_ASSIGN(out.modality_, read_modality(source.root, source.files->info()));
  for (ActionKey& a : keys->action) a.relative = false;  // no statistics of relative actions are compared
  keys->views.clear();
  for (const LerobotFeature& f : source.facts.features) {
    if (f.is_camera() && !f.is_depth) keys->views.push_back({f.name, f.name});
  }
  const std::vector<std::string> used = keys->vector_columns(), labels = keys->label_columns(),
                                 tasks = task_columns(source);
  for (const LerobotFeature& f : source.facts.features) {
    if (!f.is_numbers() || f.dtype == "float16" || is_looked_at(f.name) || holds(used, f.name) || holds(labels, f.name))
      continue;
    const bool whole = f.dtype.starts_with("int") || f.dtype.starts_with("uint");
    (whole && holds(tasks, f.name) ? out.labels_ : out.numbers_).push_back(f.name);
  }
  out.episode_stats_ = std::make_shared<EpisodeStatsCheck>(*source.files, used);
  out.videos_ = std::make_shared<ProbedVideos>(VideoProbe());
  out.source_ = EpisodeSource::make(source.files, std::move(*keys),
                                    [videos = out.videos_](const std::string& path) { return videos->probe(path); });
  return out;
}

EpisodeCheck SourceCheck::check(const SourceEpisode& episode) const {
  const auto place = source_.files->find(episode.index);
  if (!place) return {};
  EpisodeCheck out = check_episode(source_, *place);
  settle_views(episode, out);
  if (out.table_sound) check_other_columns(episode, out);
  return out;
}

void SourceCheck::settle_views(const SourceEpisode& episode, EpisodeCheck& check) const {
  std::vector<DatasetProblem> kept;
  for (DatasetProblem& p : check.problems) {
    const bool is_video = std::any_of(episode.videos.begin(), episode.videos.end(),
                                      [&](const SourceVideo& video) { return video.path == p.path; });
    // a video that can be looked at and is still refused has frames of another format
    const bool is_carried = p.code == "D09" || (p.code == "D06" && is_video && videos_->probe(p.path).has_value());
    (is_carried ? check.warnings : kept).push_back(std::move(p));
  }
  check.problems = std::move(kept);
}

void SourceCheck::check_other_columns(const SourceEpisode& episode, EpisodeCheck& check) const {
  TableColumns wanted;
  wanted.vectors = source_.columns.vector_columns();
  wanted.optional_vectors = numbers_;
  wanted.optional_integers = labels_;
  const std::string& path = episode.table;
  const auto table = source_.read_table(check.episode, wanted);
  if (!table) {
    check.problems.push_back({"D03", path, table.error().message()});
    return;
  }
  episode_stats_->compare(episode.index, *table);
  const auto warn = [&](std::string text) { check.warnings.push_back({"D04", path, std::move(text)}); };
  for (const std::string& name : numbers_) {
    const auto found = table->vectors.find(name);
    const auto width = static_cast<std::size_t>(source_.info().find(name)->width());
    if (const auto why = table->left_out.find(name); why != table->left_out.end()) {
      warn(why->second);
    } else if (found == table->vectors.end()) {
      warn(fmt::format("{} has no column '{}', which info.json lists", path, name));
    } else if (table->rows > 0 && found->second.width != width) {
      warn(fmt::format("{}: column '{}' has {} values a row; info.json says {}", path, name, found->second.width,
                       width));
    }
  }
  for (const std::string& name : labels_) check_labels(path, name, *table, check);
}

void SourceCheck::check_labels(const std::string& path, const std::string& column, const EpisodeTable& table,
                               EpisodeCheck& check) const {
  std::vector<DatasetProblem>& out = merged_ ? check.problems : check.warnings;
  if (const auto why = table.left_out.find(column); why != table.left_out.end()) {
    out.push_back({"D04", path, why->second});
    return;
  }
  const auto found = table.integers.find(column);
  if (found == table.integers.end()) {
    check.warnings.push_back({"D04", path, fmt::format("{} has no column '{}', which info.json lists", path, column)});
    return;
  }
  for (const std::int64_t label : std::set<std::int64_t>(found->second.begin(), found->second.end())) {
    if (source_.tasks().count(label) != 0) continue;
    out.push_back(
        {"D11", path, fmt::format("{}: column '{}' holds {}, which the tasks do not list", path, column, label)});
  }
}

std::vector<DatasetProblem> SourceCheck::compare_metadata(const std::vector<const EpisodeCheck*>& checks) const {
  std::vector<HealthFinding> findings;
  check_modality_names(*source_.files, modality_, findings);
  const auto videos = videos_->files();
  for (const NamedColumn& view : source_.columns.views) {
    FoundCamera found;
    for (const EpisodeCheck* check : checks) {
      const auto images = source_.images(check->episode, view);
      if (!images) continue;
      if (const auto video = videos.find(images->path); images->is_video() && video != videos.end())
        found.videos[images->path] = &video->second;
      if (const auto size = check->image_sizes.find(view.column); size != check->image_sizes.end())
        found.images.emplace_back(images->path, size->second);
    }
    compare_with_info(*source_.files, view, found, findings);
  }
  episode_stats_->report(findings);
  std::vector<DatasetProblem> out;
  const std::string info = source_.root() + "/meta/info.json";
  const auto& discarded = source_.info().discarded_episodes;
  const auto& episodes = source_.files->episodes();
  if (std::all_of(episodes.begin(), episodes.end(), [&](const EpisodeRecord& e) {
        return std::find(discarded.begin(), discarded.end(), e.index) != discarded.end();
      }))
    out.push_back({"D01", info, info + ": discarded_episode_indices leaves no episode for training"});
  for (HealthFinding& f : findings) out.push_back({f.code, f.path, std::move(f.text)});
  return out;
}

Result<std::vector<DatasetProblem>> SourceCheck::compare_statistics(std::span<const Episode> episodes,
                                                                    std::int64_t threads) const {
  HealthOptions options;
  options.threads = threads;
  HealthReport report;
  report.root = source_.root();
  report.keys = source_.columns;
  if (const auto computed = compute_statistics(source_, episodes, options, report); !computed)
    return Error{Errc::data_loss, computed.error().with(source_.root()).message()};
  std::vector<DatasetProblem> out;
  for (HealthFinding& f : report.findings) {
    const bool is_stated = f.code == "D12" && f.path.ends_with("/meta/stats.json") && f.level == FindingLevel::warning;
    if (is_stated) out.push_back({f.code, f.path, std::move(f.text)});
  }
  return out;
}

}  // namespace troupe::data
