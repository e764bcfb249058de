#include "workers/data/dataset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <set>
#include <thread>

#include "base/hash.h"
#include "workers/data/image/canvas.h"
#include "workers/data/lerobot/file_checks.h"
#include "workers/data/lerobot/lerobot_meta.h"
#include "workers/data/sampling/multi_anchor.h"

namespace troupe {

namespace {

/// Checks every record; result i belongs to record i whatever the number of threads.
std::vector<EpisodeCheck> check_all(const EpisodeSource& source, const std::vector<EpisodeRecord>& records,
                                    std::int64_t threads) {
  std::vector<EpisodeCheck> out(records.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < records.size(); i = next++) out[i] = check_episode(source, records[i]);
  };
  if (threads <= 0) threads = std::clamp<std::int64_t>(std::thread::hardware_concurrency(), 1, 16);
  threads = std::min(threads, static_cast<std::int64_t>(records.size()));
  std::vector<std::jthread> pool;
  for (std::int64_t t = 1; t < threads; ++t) pool.emplace_back(work);
  work();
  pool.clear();  // joins
  return out;
}

std::string list_of(const std::vector<DatasetProblem>& problems) {
  std::string out;
  for (const DatasetProblem& p : problems) out += fmt::format("\n  {} {}", p.code, p.text);
  return out;
}

bool contains(const std::vector<std::int64_t>& values, std::int64_t value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

Result<void> Dataset::load_source(const DataConfig& data, const ModelConfig& model, const DatasetOptions& options) {
  if (data.sets.size() != 1) {
    return Error{Errc::invalid_argument,
                 fmt::format("data.sets lists {} datasets; a job reads exactly one", data.sets.size())};
  }
  if (const auto defect = window_defect(data.window)) return Error{Errc::invalid_argument, *defect};
  source_.root = data.sets[0].path;
  while (source_.root.size() > 1 && source_.root.back() == '/') source_.root.pop_back();
  source_.probe = options.probe ? options.probe : VideoProbe(probe_video);
  TROUPE_ASSIGN(source_.info, read_lerobot_info(source_.root));
  TROUPE_ASSIGN(records_, read_episodes(source_.root));
  TROUPE_ASSIGN(source_.tasks, read_tasks(source_.root));
  TROUPE_ASSIGN(const Modality modality, read_modality(source_.root, source_.info));
  auto columns = resolve_columns(modality, source_.info, data.embodiment);
  if (!columns) return columns.error().with(source_.root);
  source_.columns = std::move(*columns);
  if (static_cast<std::int64_t>(source_.columns.action_width()) > model.dit.action_dim) {
    return Error{Errc::invalid_argument,
                 fmt::format("the action keys have {} values together; model.dit.action_dim is {}",
                             source_.columns.action_width(), model.dit.action_dim)};
  }
  const auto views = static_cast<std::int64_t>(source_.columns.views.size());
  TROUPE_ASSIGN([[maybe_unused]] const CanvasLayout canvas,
                CanvasLayout::make(data.embodiment.layout, views, data.image.height, data.image.width));
  return {};
}

Result<void> Dataset::check_files(const DataConfig& data, const DatasetOptions& options) {
  const std::size_t listed = records_.size();
  std::erase_if(records_, [&](const EpisodeRecord& r) { return contains(source_.info.discarded_episodes, r.index); });
  for (EpisodeCheck& check : check_all(source_, records_, options.threads)) {
    warnings_.insert(warnings_.end(), check.warnings.begin(), check.warnings.end());
    if (check.problems.empty()) {
      episodes_.push_back(std::move(check.episode));
    } else {
      ++skipped_episodes_;
      problems_.insert(problems_.end(), check.problems.begin(), check.problems.end());
    }
  }
  check_counts(listed);
  if (!problems_.empty() && data.bad_sample != "skip") {
    return Error{Errc::data_loss,
                 fmt::format("{}: {} of {} episodes have bad files (data.bad_sample: skip leaves them out):{}", root(),
                             skipped_episodes_, records_.size(), list_of(problems_))};
  }
  return {};
}

void Dataset::check_counts(std::size_t listed) {
  const auto compare = [&](const char* key, std::int64_t stated, std::int64_t found) {
    if (stated < 0 || stated == found) return;
    warnings_.push_back({"D02", root() + "/meta/info.json",
                         fmt::format("{}/meta/info.json says {} {}; {} were found", root(), key, stated, found)});
  };
  std::int64_t rows = 0;
  for (const EpisodeRecord& r : records_) rows += r.length;
  compare("total_episodes", source_.info.total_episodes, static_cast<std::int64_t>(listed));
  if (listed == records_.size()) compare("total_frames", source_.info.total_frames, rows);
  compare("total_tasks", source_.info.total_tasks, static_cast<std::int64_t>(source_.tasks.size()));
}

Result<void> Dataset::index_samples(const DataConfig& data) {
  TROUPE_ASSIGN(const auto removed, read_step_filter(root()));
  for (std::int64_t wanted : data.eval_episodes) {
    const bool exists =
        std::any_of(records_.begin(), records_.end(), [&](const EpisodeRecord& r) { return r.index == wanted; });
    if (!exists) {
      return Error{Errc::invalid_argument,
                   fmt::format("data.eval_episodes names {}, which {} does not have", wanted, root())};
    }
  }
  std::int64_t empty = 0;
  for (std::size_t place = 0; place < episodes_.size(); ++place) {
    const Episode& e = episodes_[place];
    std::vector<std::int64_t> rows;
    for (auto it = removed.lower_bound({e.index, INT64_MIN}); it != removed.end() && it->first == e.index; ++it)
      rows.push_back(it->second);
    SampleIndex& index = contains(data.eval_episodes, e.index) ? eval_ : train_;
    if (index.add_episode(place, data.window, e.row_labels(), rows) == 0) ++empty;
  }
  if (empty > 0) {
    warnings_.push_back({"D14", root(),
                         fmt::format("{}: {} of {} episodes are too short for one full window of {} chunks", root(),
                                     empty, episodes_.size(), data.window.chunks)});
  }
  if (train_.size() == 0) {
    return Error{
        Errc::failed_precondition,
        fmt::format(
            "{}: no training sample: {} usable episodes, {} of them too short for {} chunks of {} rows, {} held out by "
            "data.eval_episodes, {} with bad files{}",
            root(), episodes_.size(), empty, data.window.chunks, data.window.macro_stride, data.eval_episodes.size(),
            skipped_episodes_, list_of(problems_))};
  }
  return {};
}

Result<void> Dataset::load_statistics_of(const DataConfig& data) {
  TROUPE_ASSIGN(LoadedStatistics loaded, load_statistics(source_, episodes_, data.window.action_horizon));
  statistics_ = std::move(loaded.keys);
  warnings_.insert(warnings_.end(), loaded.warnings.begin(), loaded.warnings.end());
  const Episode& first = episodes_.front();
  metadata_json_ = experiment_metadata(source_, statistics_, data.embodiment.tag, first.view_height, first.view_width);
  return {};
}

Result<void> Dataset::compute_fingerprint(const DataConfig& data) {
  Xxh3Stream hash;
  const auto add = [&](const std::string& text) { hash.update(std::as_bytes(std::span(text.data(), text.size()))); };
  for (const char* name : {"info.json", "episodes.jsonl", "tasks.jsonl", "modality.json", "stats.json",
                           "relative_stats_dreamzero.json", "step_filter.jsonl"}) {
    const std::string path = root() + "/meta/" + name;
    if (!std::filesystem::exists(path)) continue;
    TROUPE_ASSIGN(const std::string text, read_text_file(path));
    add(fmt::format("{} {}\n", name, xxh3_128_hex(std::as_bytes(std::span(text.data(), text.size())))));
  }
  for (const Episode& e : episodes_) add(fmt::format("{} {} {:016x}\n", e.index, e.length, e.files_hash));
  const WindowConfig& w = data.window;
  const std::set<std::int64_t> held_out(data.eval_episodes.begin(), data.eval_episodes.end());
  add(fmt::format("{} {} {} {} {} {}\n", w.chunks, w.macro_stride, w.action_horizon, fmt::join(w.video_offsets, ","),
                  fmt::join(held_out, ","), source_.columns.label_column));
  fingerprint_ = hash.hex();
  return {};
}

Result<std::shared_ptr<const Dataset>> Dataset::open(const DataConfig& data, const ModelConfig& model,
                                                     const DatasetOptions& options) {
  std::shared_ptr<Dataset> set(new Dataset());
  TROUPE_TRY(set->load_source(data, model, options));
  TROUPE_TRY(set->check_files(data, options));
  TROUPE_TRY(set->index_samples(data));
  TROUPE_TRY(set->load_statistics_of(data));
  TROUPE_TRY(set->compute_fingerprint(data));
  return std::shared_ptr<const Dataset>(std::move(set));
}

std::uint64_t Dataset::eval_size(std::int64_t max_samples) const {
  return std::min(eval_.size(), static_cast<std::uint64_t>(std::max<std::int64_t>(max_samples, 0)));
}

SampleEntry Dataset::eval_entry(std::uint64_t i, std::int64_t max_samples) const {
  return eval_.spread(i, eval_size(max_samples));
}

Result<EpisodeTable> Dataset::read_table(std::size_t place) const {
  TROUPE_ASSIGN(const std::string path, source_.parquet_path(episodes_[place].index));
  return read_parquet(path, source_.sample_table());
}

Result<std::string> Dataset::video_path(std::size_t place, std::size_t view) const {
  return source_.video_path(episodes_[place].index, source_.columns.views[view]);
}

std::string Dataset::task_text(std::int64_t label) const {
  const auto it = source_.tasks.find(label);
  return source_.columns.label_column.empty() || it == source_.tasks.end() ? std::string() : it->second;
}

}  // namespace troupe
