#include "data/index/sample_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/index/sample_summary.h"

namespace troupe::data {

namespace {

// Sections of samples-*.idx.
enum Section : std::size_t {
  kSummary,
  kMetadata,
  kPaths,
  kStates,
  kWatched,
  kEpisodes,
  kImages,
  kLabels,
  kTrain,
  kEval,
  kTaskLabels,
  kTaskEnds,
  kTaskTexts,
  kNumSections
};

constexpr std::int64_t kMostRows = std::int64_t{1} << 26;    // of an episode: somebody allocates its labels
constexpr std::int64_t kMostPlaces = std::int64_t{1} << 40;  // rows of a file, episodes of a dataset

template <class T>
std::string bytes_of(std::span<const T> values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

}  // namespace

// As they lie in the file: docs/dataset-index.md, "samples".
struct SampleTable::EpisodeRow {
  std::int64_t index, rows, length;
  std::uint64_t place;  ///< in LerobotDataset::episodes()
  std::int64_t first_row;
  std::uint64_t files_hash;
  std::uint64_t first_label;  ///< in the section of label runs; the next episode's is the end
  std::uint32_t data_path;
  std::int32_t view_height, view_width;
  std::uint32_t num_labels;
};
struct SampleTable::ImageRow {
  std::int64_t first;
  std::uint64_t path;
};

std::string encode_samples(const SampleContents& c) {
  static_assert(sizeof(SampleTable::EpisodeRow) == 72 && sizeof(SampleTable::ImageRow) == 16, "docs/dataset-index.md");
  std::vector<SampleTable::EpisodeRow> episodes;
  std::vector<SampleTable::ImageRow> images;
  std::vector<LabelRun> labels;
  for (const IndexedEpisode& e : c.episodes) {
    episodes.push_back({.index = e.episode.index,
                        .rows = e.episode.rows,
                        .length = e.episode.length,
                        .place = e.episode.place,
                        .first_row = e.first_row,
                        .files_hash = e.episode.files_hash,
                        .first_label = labels.size(),
                        .data_path = e.data_path,
                        .view_height = static_cast<std::int32_t>(e.episode.view_height),
                        .view_width = static_cast<std::int32_t>(e.episode.view_width),
                        .num_labels = static_cast<std::uint32_t>(e.episode.labels.size())});
    labels.insert(labels.end(), e.episode.labels.begin(), e.episode.labels.end());
    for (const auto& p : e.images) images.push_back({.first = p.first, .path = p.path});
  }
  std::vector<std::int64_t> task_labels;
  std::vector<std::uint64_t> task_ends;
  std::string texts;
  for (const auto& [label, text] : c.tasks) {
    task_labels.push_back(label);
    texts += text;
    task_ends.push_back(texts.size());
  }
  std::vector<std::string> sections(kNumSections);
  sections[kSummary] = encode_summary(c.summary);
  sections[kMetadata] = encode_metadata(c.metadata);
  sections[kPaths] = PathTable::encode(c.paths);
  sections[kStates] = bytes_of<FileState>(c.states);
  sections[kWatched] = bytes_of<std::uint32_t>(c.watched);
  sections[kEpisodes] = bytes_of<SampleTable::EpisodeRow>(episodes);
  sections[kImages] = bytes_of<SampleTable::ImageRow>(images);
  sections[kLabels] = bytes_of<LabelRun>(labels);
  sections[kTrain] = bytes_of(c.train.runs());
  sections[kEval] = bytes_of(c.eval.runs());
  sections[kTaskLabels] = bytes_of<std::int64_t>(task_labels);
  sections[kTaskEnds] = bytes_of<std::uint64_t>(task_ends);
  sections[kTaskTexts] = std::move(texts);
  return index_bytes(IndexKind::samples, sections, kNumSections);
}

Result<std::shared_ptr<const SampleTable>> SampleTable::open(std::shared_ptr<const IndexFile> file) {
  std::shared_ptr<SampleTable> table(new SampleTable());
  table->file_ = std::move(file);
  const IndexFile& f = *table->file_;
  if (f.num_sections() != kNumSections) return f.damage(fmt::format("{} sections", f.num_sections()));
  auto summary = decode_summary(f.section(kSummary));
  if (!summary) return f.damage(summary.error().message());
  table->summary_ = std::move(*summary);
  auto metadata = decode_metadata(f.section(kMetadata));
  if (!metadata) return f.damage(metadata.error().message());
  table->metadata_ = std::move(*metadata);
  auto paths = PathTable::parse(f.section(kPaths));
  if (!paths) return f.damage(paths.error().message());
  table->paths_ = std::move(*paths);
  TROUPE_TRY(table->read_arrays());
  TROUPE_TRY(table->read_tasks());
  TROUPE_TRY(table->check_episodes());
  TROUPE_TRY(table->check_runs(table->train_, table->summary_.train_size));
  TROUPE_TRY(table->check_runs(table->eval_, table->summary_.eval_size));
  return std::shared_ptr<const SampleTable>(std::move(table));
}

Result<void> SampleTable::read_arrays() {
  TROUPE_ASSIGN(states_, file_->array<FileState>(kStates));
  TROUPE_ASSIGN(watched_, file_->array<std::uint32_t>(kWatched));
  TROUPE_ASSIGN(episodes_, file_->array<EpisodeRow>(kEpisodes));
  TROUPE_ASSIGN(images_, file_->array<ImageRow>(kImages));
  TROUPE_ASSIGN(labels_, file_->array<LabelRun>(kLabels));
  TROUPE_ASSIGN(train_, file_->array<SampleIndex::Run>(kTrain));
  TROUPE_ASSIGN(eval_, file_->array<SampleIndex::Run>(kEval));
  TROUPE_ASSIGN(task_labels_, file_->array<std::int64_t>(kTaskLabels));
  TROUPE_ASSIGN(task_ends_, file_->array<std::uint64_t>(kTaskEnds));
  task_texts_ = file_->section(kTaskTexts);
  const bool paths_fit =
      std::all_of(watched_.begin(), watched_.end(), [&](std::uint32_t p) { return p < paths_.size(); }) &&
      std::all_of(images_.begin(), images_.end(),
                  [&](const ImageRow& p) { return p.path < paths_.size() && p.first >= 0; });
  const bool sizes_fit = states_.size() == paths_.size() &&
                         images_.size() == episodes_.size() * static_cast<std::size_t>(summary_.num_views);
  if (!paths_fit || !sizes_fit) return file_->damage("its lists do not fit each other");
  return {};
}

Result<void> SampleTable::read_tasks() {
  bool fits = task_labels_.size() == task_ends_.size() && std::is_sorted(task_ends_.begin(), task_ends_.end()) &&
              (task_ends_.empty() ? task_texts_.empty() : task_ends_.back() == task_texts_.size());
  fits = fits &&
         std::adjacent_find(task_labels_.begin(), task_labels_.end(), std::greater_equal<>()) == task_labels_.end();
  if (!fits) return file_->damage("its tasks do not fit each other");
  return {};
}

Result<void> SampleTable::check_episodes() const {
  std::uint64_t label = 0;
  std::int64_t before = -1;
  for (const EpisodeRow& e : episodes_) {
    bool fits = e.index > before && e.length >= 0 && e.length <= e.rows && e.rows <= kMostRows &&
                e.place <= static_cast<std::uint64_t>(kMostPlaces) && e.first_row >= 0 && e.first_row <= kMostPlaces &&
                e.data_path < paths_.size() && e.view_height > 0 && e.view_width > 0 && e.first_label == label &&
                e.num_labels >= (e.rows > 0 ? 1U : 0U) && e.num_labels <= labels_.size() - label;
    for (std::uint64_t i = 0; fits && i < e.num_labels; ++i) {
      const std::int64_t least = i == 0 ? 0 : labels_[label + i - 1].first + 1;
      fits =
          i == 0 ? labels_[label].first == 0 : labels_[label + i].first >= least && labels_[label + i].first < e.rows;
    }
    if (!fits) return file_->damage(fmt::format("the entry of episode {} cannot be", e.index));
    label += e.num_labels;
    before = e.index;
  }
  if (label != labels_.size()) return file_->damage("it has labels of no episode");
  return {};
}

Result<void> SampleTable::check_runs(std::span<const SampleIndex::Run> runs, std::uint64_t size) const {
  const auto stride = static_cast<std::uint64_t>(summary_.anchor_stride);
  bool fits = runs.empty() ? size == 0 : runs.front().begin == 0;
  for (std::size_t i = 0; fits && i < runs.size(); ++i) {
    const SampleIndex::Run& r = runs[i];
    const std::uint64_t end = i + 1 < runs.size() ? runs[i + 1].begin : size;
    if (r.episode >= episodes_.size() || r.anchor < 0 || end <= r.begin)
      fits = false;
    else {
      // the last anchor of the run is a row: anchor + (count - 1) * stride < length, without overflow
      const std::int64_t length = episodes_[r.episode].length;
      fits = r.anchor < length && (end - r.begin - 1) <= (static_cast<std::uint64_t>(length - 1 - r.anchor)) / stride;
    }
  }
  if (!fits) return file_->damage("its samples lie outside their episodes");
  return {};
}

Episode SampleTable::episode(std::size_t place) const {
  const EpisodeRow& row = episodes_[place];
  Episode e;
  e.index = row.index;
  e.place = static_cast<std::size_t>(row.place);
  e.rows = row.rows;
  e.length = row.length;
  e.view_height = row.view_height;
  e.view_width = row.view_width;
  e.files_hash = row.files_hash;
  const auto labels = labels_.subspan(row.first_label, row.num_labels);
  e.labels.assign(labels.begin(), labels.end());
  return e;
}

std::optional<std::size_t> SampleTable::find_episode(std::int64_t index) const {
  const auto it = std::lower_bound(episodes_.begin(), episodes_.end(), index,
                                   [](const EpisodeRow& row, std::int64_t value) { return row.index < value; });
  if (it == episodes_.end() || it->index != index) return std::nullopt;
  return static_cast<std::size_t>(it - episodes_.begin());
}

RowSource SampleTable::rows(std::size_t place) const {
  return {.path = paths_.at(episodes_[place].data_path), .first_row = episodes_[place].first_row};
}

ImageSource SampleTable::images(std::size_t place, std::size_t view) const {
  const ImageRow& row = images_[place * static_cast<std::size_t>(summary_.num_views) + view];
  return {.path = paths_.at(row.path), .first = row.first, .column = summary_.image_columns[view]};
}

std::vector<std::uint32_t> SampleTable::files_of(std::size_t place) const {
  std::vector<std::uint32_t> out = {episodes_[place].data_path};
  const auto views = static_cast<std::size_t>(summary_.num_views);
  for (const ImageRow& p : images_.subspan(place * views, views)) out.push_back(static_cast<std::uint32_t>(p.path));
  return out;
}

SampleIndex SampleTable::train() const {
  return SampleIndex(summary_.anchor_stride, {train_.begin(), train_.end()}, summary_.train_size);
}
SampleIndex SampleTable::eval() const {
  return SampleIndex(summary_.anchor_stride, {eval_.begin(), eval_.end()}, summary_.eval_size);
}

std::optional<std::string_view> SampleTable::task(std::int64_t label) const {
  const auto it = std::lower_bound(task_labels_.begin(), task_labels_.end(), label);
  if (it == task_labels_.end() || *it != label) return std::nullopt;
  const auto i = static_cast<std::size_t>(it - task_labels_.begin());
  const std::uint64_t begin = i == 0 ? 0 : task_ends_[i - 1];
  return std::string_view(reinterpret_cast<const char*>(task_texts_.data()) + begin, task_ends_[i] - begin);
}

}  // namespace troupe::data
