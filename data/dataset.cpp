#include "data/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <tuple>

#include "base/log.h"
#include "data/lerobot/dataset_location.h"
#include "data/lerobot/defects.h"
#include "data/lerobot/modality.h"
#include "data/sampling/window.h"
#include "image/canvas.h"

namespace troupe::data {

struct Dataset::Shared {
  ParquetFiles tables;
  std::mutex mutex;
  std::set<std::string> replaced;
};

Dataset::Dataset() : shared_(std::make_unique<Shared>()) {}
Dataset::~Dataset() = default;

namespace {

constexpr std::size_t kLoggedReplacements = 20;

/// One line for each file and cause, however many episodes share the file.
std::string list_of(const std::vector<DatasetProblem>& problems) {
  std::vector<std::pair<const DatasetProblem*, std::size_t>> lines;
  std::map<std::tuple<std::string, std::string, std::string>, std::size_t> place_of;
  std::set<std::string> codes;
  for (const DatasetProblem& p : problems) {
    const auto [it, is_new] = place_of.try_emplace({p.code, p.path, cause_of(p.text)}, lines.size());
    if (is_new) lines.emplace_back(&p, 0);
    ++lines[it->second].second;
    codes.insert(p.code);
  }
  std::string out;
  for (const auto& [problem, times] : lines) {
    out += fmt::format("\n  {} {}", problem->code, problem->text);
    if (times > 1) out += fmt::format(" (the same for {} more episodes)", times - 1);
  }
  for (const std::string& code : codes) {
    if (const Defect* defect = find_defect(code)) out += fmt::format("\n  to mend {}: {}", code, defect->remedy);
  }
  return out;
}

std::vector<DatasetProblem> problems_of(const std::vector<EpisodeFinding>& findings) {
  std::vector<DatasetProblem> out;
  for (const EpisodeFinding& f : findings) out.push_back(f.problem);
  return out;
}

}  // namespace

Result<void> Dataset::read_columns() {
  if (const auto defect = window_defect(spec_)) return invalid_argument(*defect);
  TROUPE_ASSIGN(root_, find_dataset(spec_.path));
  while (root_.size() > 1 && root_.back() == '/') root_.pop_back();
  TROUPE_ASSIGN(info_, read_lerobot_info(root_));
  TROUPE_ASSIGN(const Modality modality, read_modality(root_, info_));
  auto columns = resolve_columns(modality, info_, spec_.embodiment);
  if (!columns) return columns.error().with(root_);
  columns_ = std::move(*columns);
  return check_columns();
}

Result<void> Dataset::check_columns() const {
  if (static_cast<std::int64_t>(columns_.action_width()) > spec_.max_action_dim) {
    return invalid_argument(fmt::format("{}: the action keys have {} values together; model.dit.action_dim is {}",
                                        root_, columns_.action_width(), spec_.max_action_dim));
  }
  if (const double wanted = spec_.embodiment.fps; wanted > 0 && std::abs(info_.fps - wanted) > 0.01 * wanted) {
    return invalid_argument(
        fmt::format("{}/meta/info.json says {} frames/s; the fps of embodiment {} is {}, and strides are made for that",
                    root_, info_.fps, spec_.embodiment.tag, wanted));
  }
  const auto views = static_cast<std::int64_t>(columns_.views.size());
  const auto canvas = CanvasLayout::make(spec_.embodiment.layout, views, spec_.image.height, spec_.image.width);
  return canvas ? Result<void>() : Result<void>(canvas.error());
}

Result<void> Dataset::take_index() {
  const SampleTable& samples = *index_.samples;
  const SampleSummary& summary = samples.summary();
  if (summary.num_views != static_cast<std::int64_t>(columns_.views.size())) {
    return Error{Errc::internal, fmt::format("{}: its index has {} views, its columns {}", root_, summary.num_views,
                                             columns_.views.size())};
  }
  problems_ = problems_of(summary.problems);
  warnings_ = problems_of(summary.warnings);
  if (!problems_.empty() && spec_.bad_sample != "skip") {
    return Error{Errc::data_loss,
                 fmt::format("{}: {} of {} episodes have bad files (data.bad_sample: skip leaves them out):{}", root_,
                             summary.skipped_episodes, summary.listed_episodes, list_of(problems_))};
  }
  if (summary.train_size == 0) {
    const WindowConfig& w = spec_.window;
    return Error{Errc::failed_precondition,
                 fmt::format("{}: no training sample: {} usable episodes, {} of them too short for {} chunks of {} "
                             "rows, {} held out by data.eval_episodes, {} with bad files{}",
                             root_, samples.num_episodes(), summary.short_episodes, w.chunks, w.macro_stride,
                             spec_.eval_episodes.size(), summary.skipped_episodes, list_of(problems_))};
  }
  episodes_.reserve(samples.num_episodes());
  for (std::size_t place = 0; place < samples.num_episodes(); ++place) episodes_.push_back(samples.episode(place));
  train_ = samples.train();
  eval_ = samples.eval();
  return {};
}

Result<std::shared_ptr<const Dataset>> Dataset::open(const DatasetSpec& spec, const DatasetOptions& options) {
  std::shared_ptr<Dataset> set(new Dataset());
  set->spec_ = spec;
  TROUPE_TRY(set->read_columns());
  TROUPE_ASSIGN(set->index_, open_index(set->root_, set->spec_, set->columns_, options));
  TROUPE_TRY(set->take_index());
  return std::shared_ptr<const Dataset>(std::move(set));
}

Result<std::shared_ptr<const Dataset>> Dataset::open(const DataConfig& data, const ModelConfig& model,
                                                     const DatasetOptions& options) {
  if (data.sets.size() != 1) {
    return invalid_argument(fmt::format("data.sets lists {} datasets; exactly one is wanted here", data.sets.size()));
  }
  TROUPE_ASSIGN(const DatasetSpec spec, dataset_spec(data, model, 0));
  return open(spec, options);
}

std::uint64_t Dataset::eval_size(std::int64_t max_samples) const {
  return std::min(eval_.size(), static_cast<std::uint64_t>(std::max<std::int64_t>(max_samples, 0)));
}

SampleEntry Dataset::eval_entry(std::uint64_t i, std::int64_t max_samples) const {
  return eval_.spread(i, eval_size(max_samples));
}

void Dataset::note_replaced(const std::string& path) const {
  const std::lock_guard lock(shared_->mutex);
  if (!shared_->replaced.insert(path).second || shared_->replaced.size() > kLoggedReplacements) return;
  log::warn(
      "D16 {} is not the file that was indexed; it is read as it is now (data.index.build: rebuild renews the index){}",
      path, shared_->replaced.size() == kLoggedReplacements ? "; further ones are only counted" : "");
}

std::int64_t Dataset::replaced_files() const {
  const std::lock_guard lock(shared_->mutex);
  return static_cast<std::int64_t>(shared_->replaced.size());
}

Result<EpisodeTable> Dataset::read_table(std::size_t place) const {
  const SampleTable& samples = *index_.samples;
  const RowSource rows = samples.rows(place);
  const std::string path = root_ + "/" + rows.path;
  // a file that vanished is the reader's to report
  std::error_code absent;
  const bool same = index_.times->is_unchanged(rows.path, samples.state(samples.files_of(place).front()));
  if (!same && std::filesystem::exists(path, absent)) note_replaced(path);
  TableColumns wanted;
  wanted.vectors = columns_.vector_columns();
  wanted.integers = columns_.label_columns();
  return shared_->tables.read(path, wanted, {rows.first_row, episodes_[place].rows});
}

Result<ImageSource> Dataset::images(std::size_t place, std::size_t view) const {
  ImageSource source = index_.samples->images(place, view);
  source.path = root_ + "/" + source.path;
  return source;
}

std::shared_ptr<const PacketTable> Dataset::packet_table(const std::string& path, const FileIdentity& identity) const {
  if (path.size() <= root_.size() + 1 || !path.starts_with(root_) || path[root_.size()] != '/') return nullptr;
  const std::string name = path.substr(root_.size() + 1);
  const auto place = index_.files->find(name);
  if (!place) return nullptr;
  const auto entry = index_.files->entry(*place);
  if (!entry) {
    log::warn("{}; {} is read from the file", entry.error().message(), path);
    return nullptr;
  }
  if (!index_.times->is_unchanged(name, entry->state, identity.size, identity.modified_ns)) {
    note_replaced(path);
    return nullptr;
  }
  const auto packets = index_.files->packets(*place);
  if (packets) return *packets;
  log::warn("{}; {} is read from the file", packets.error().message(), path);
  return nullptr;
}

std::string Dataset::task_text(std::int64_t label) const {
  const auto text = index_.samples->task(label);
  return columns_.label_column.empty() || !text ? std::string() : std::string(*text);
}

}  // namespace troupe::data
