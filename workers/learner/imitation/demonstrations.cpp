#include "workers/learner/imitation/demonstrations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <limits>
#include <system_error>
#include <utility>

#include "base/hash.h"
#include "data/sampling/mixture_weights.h"
#include "data/sampling/sampler.h"
#include "model/loss/rl_keys.h"
#include "workers/learner/imitation/recorded_set.h"

namespace troupe::workers {

namespace {

/// The first `width` numbers of every row.
void append_floats(const VectorColumn& column, std::int64_t width, std::vector<float>& out) {
  for (std::size_t first = 0; first < column.values.size(); first += column.width) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(width); ++i)
      out.push_back(static_cast<float>(column.values[first + i]));
  }
}

template <class T>
std::span<const std::byte> raw(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

}  // namespace

std::vector<PolicyShape::Image> demonstrated_images(const PolicyConfig& policy, const PolicyShape& shape) {
  if (policy.actor_vision() == Vision::none) return {};
  return seen_by_actor(shape).images;
}

SampleLayout demonstration_layout(const PolicyConfig& policy, const PolicyShape& shape) {
  SampleLayout layout;
  layout.append("state", FieldType::f32, {seen_by_actor(shape).state_dim});
  layout.append("action", FieldType::f32, {shape.chunk, shape.action_dim});
  layout.append("counts", FieldType::u8, {shape.chunk});
  layout.append("position", FieldType::i64, {1});
  for (const PolicyShape::Image& image : demonstrated_images(policy, shape))
    layout.append(rl_keys::kImagePrefix + image.name, FieldType::u8, {image.height, image.width, image.channels});
  for (const PolicyShape::Text& text : shape.texts)
    layout.append(rl_keys::kTextPrefix + text.name, FieldType::u8, {text.bytes});
  return layout;
}

Demonstrations::Demonstrations(const PolicyConfig& policy, const PolicyShape& shape)
    : state_dim_(seen_by_actor(shape).state_dim),
      action_dim_(shape.action_dim),
      chunk_(shape.chunk),
      images_(demonstrated_images(policy, shape)),
      texts_(shape.texts),
      layout_(demonstration_layout(policy, shape)) {}

Result<std::shared_ptr<const Demonstrations>> Demonstrations::open(const JobConfig& job, const PolicyShape& shape) {
  TROUPE_ASSIGN(const std::vector<RecordedSet> sets,
                RecordedSet::open_all(job.data, shape, demonstrated_images(job.policy, shape)));
  std::shared_ptr<Demonstrations> all(new Demonstrations(job.policy, shape));
  for (const RecordedSet& set : sets) TROUPE_TRY(all->add(set));
  TROUPE_TRY(all->finish(job.data));
  return std::shared_ptr<const Demonstrations>(std::move(all));
}

Result<void> Demonstrations::add(const RecordedSet& set) {
  Source source;
  source.root = set.root();
  for (const RecordedSet::Episode& episode : set.episodes()) {
    TROUPE_ASSIGN(const EpisodeTable table, set.read(episode));
    const auto first = static_cast<std::int64_t>(source.states.size()) / state_dim_;
    append_floats(table.vectors.at(kStateColumn), state_dim_, source.states);
    append_floats(table.vectors.at(kActionColumn), action_dim_, source.actions);
    if (!texts_.empty()) TROUPE_TRY(add_texts(set, table, source));
    std::vector<Anchor>& anchors = episode.is_held_out ? source.eval : source.train;
    for (std::int64_t row = first; row < first + table.rows; ++row)
      anchors.push_back({.row = row, .end = first + table.rows});
    Used used{.first_row = first, .length = table.rows, .frames = {}};
    for (const PolicyShape::Image& image : images_) {
      TROUPE_ASSIGN(ImageSource frames, set.frames(episode, image));
      used.frames.push_back(std::move(frames));
    }
    source.episodes.push_back(std::move(used));
  }
  sources_.push_back(std::move(source));
  return {};
}

Result<void> Demonstrations::add_texts(const RecordedSet& set, const EpisodeTable& table, Source& source) {
  for (const std::int64_t task : table.integers.at(kTaskColumn)) {
    source.tasks.push_back(task);
    if (source.texts.contains(task)) continue;
    TROUPE_ASSIGN(source.texts[task], set.told(task));
  }
  return {};
}

Result<void> Demonstrations::finish(const DataConfig& data) {
  std::vector<std::uint64_t> samples;
  Xxh3Stream hash;
  for (const Source& source : sources_) {
    samples.push_back(source.train.size());
    hash.update(raw(source.states));
    hash.update(raw(source.actions));
    for (const auto* anchors : {&source.train, &source.eval}) hash.update(raw(*anchors));
    hash.update(raw(source.tasks));
    for (const auto& [task, text] : source.texts) {
      hash.update(std::as_bytes(std::span(&task, 1)));
      hash.update(std::as_bytes(std::span(text)));
    }
  }
  const std::vector<double> weights = mixture_weights(data, samples);
  order_ = MixtureOrder(weights);
  hash.update(raw(weights));
  hash.update(raw(std::vector<std::int64_t>{state_dim_, action_dim_, chunk_}));
  TROUPE_TRY(hash_images(hash));
  fingerprint_ = hash.hex();
  return {};
}

/// Which pictures there are, and the sizes of their files.
Result<void> Demonstrations::hash_images(Xxh3Stream& hash) const {
  for (const PolicyShape::Image& image : images_) {
    hash.update(std::as_bytes(std::span(image.name)));
    hash.update(raw(std::vector<std::int64_t>{image.height, image.width}));
  }
  for (const Source& source : sources_) {
    for (const Used& episode : source.episodes) {
      for (const ImageSource& frames : episode.frames) {
        std::error_code failed;
        const auto bytes = std::filesystem::file_size(frames.path, failed);
        if (failed) return Error{Errc::not_found, fmt::format("{}: {}", frames.path, failed.message())};
        hash.update(raw(std::vector<std::int64_t>{frames.first, static_cast<std::int64_t>(bytes)}));
      }
    }
  }
  return {};
}

std::int64_t Demonstrations::image_bytes() const noexcept {
  std::int64_t row = 0, rows = 0;
  for (const PolicyShape::Image& image : images_) row += image.bytes();
  for (const Source& source : sources_) {
    for (const Used& episode : source.episodes) rows += episode.length;
  }
  return row * rows;
}

const ImageSource& Demonstrations::frames(const DemonstrationRow& at, std::size_t image) const {
  return sources_[at.set].episodes[at.episode].frames[image];
}

std::int64_t Demonstrations::length(const DemonstrationRow& at) const {
  return sources_[at.set].episodes[at.episode].length;
}

std::int64_t Demonstrations::train_size() const noexcept {
  std::size_t total = 0;
  for (const Source& source : sources_) total += source.train.size();
  return static_cast<std::int64_t>(total);
}

std::int64_t Demonstrations::eval_size(std::int64_t max_samples) const noexcept {
  std::size_t total = 0;
  for (const Source& source : sources_) total += source.eval.size();
  return std::min(max_samples, static_cast<std::int64_t>(total));
}

std::int64_t Demonstrations::resident_bytes() const noexcept {
  std::size_t bytes = 0;
  for (const Source& source : sources_) {
    bytes += (source.states.size() + source.actions.size()) * sizeof(float) +
             source.tasks.size() * sizeof(std::int64_t) + (source.train.size() + source.eval.size()) * sizeof(Anchor);
  }
  return static_cast<std::int64_t>(bytes);
}

std::vector<std::string> Demonstrations::roots() const {
  std::vector<std::string> all;
  for (const Source& source : sources_) all.push_back(source.root);
  return all;
}

Result<DemonstrationRow> Demonstrations::build(Split split, std::int64_t position, std::uint64_t seed,
                                               std::int64_t max_eval, std::span<std::byte> slot) const {
  if (position < 0)
    return Error{Errc::invalid_argument, fmt::format("position {} of demonstrations; positions begin at 0", position)};
  if (split == Split::train) {
    const MixtureOrder::Draw draw = order_.draw(seed, static_cast<std::uint64_t>(position));
    const Source& source = sources_[draw.dataset];
    const SampleDraw sample =
        draw_sample(MixtureOrder::inner_seed(seed, draw.dataset), draw.inner, source.train.size());
    return write(draw.dataset, source.train[sample.index], position, slot);
  }
  const std::int64_t count = eval_size(max_eval);
  if (position >= count) return Error{Errc::invalid_argument, fmt::format("held-out sample {} of {}", position, count)};
  auto index = static_cast<std::size_t>(position * eval_size(std::numeric_limits<std::int64_t>::max()) / count);
  std::size_t set = 0;
  for (; index >= sources_[set].eval.size(); ++set) index -= sources_[set].eval.size();
  return write(set, sources_[set].eval[index], position, slot);
}

DemonstrationRow Demonstrations::write(std::size_t set, const Anchor& anchor, std::int64_t position,
                                       std::span<std::byte> slot) const {
  const Source& source = sources_[set];
  std::memset(slot.data(), 0, slot.size());
  const auto copy = [](const std::vector<float>& from, std::int64_t row, std::span<float> to) {
    std::copy_n(from.data() + row * static_cast<std::int64_t>(to.size()), to.size(), to.data());
  };
  copy(source.states, anchor.row, field_values<float>(slot, layout_.field("state")));
  const auto actions = field_values<float>(slot, layout_.field("action"));
  const auto counts = field_values<std::uint8_t>(slot, layout_.field("counts"));
  const auto width = static_cast<std::size_t>(action_dim_);
  for (std::int64_t k = 0; k < chunk_; ++k) {
    copy(source.actions, std::min(anchor.row + k, anchor.end - 1),
         actions.subspan(static_cast<std::size_t>(k) * width, width));
    counts[static_cast<std::size_t>(k)] = anchor.row + k < anchor.end ? 1 : 0;
  }
  field_values<std::int64_t>(slot, layout_.field("position"))[0] = position;
  for (const PolicyShape::Text& text : texts_) {
    std::ranges::copy(source.texts.at(source.tasks[static_cast<std::size_t>(anchor.row)]),
                      field_values<std::uint8_t>(slot, layout_.field(rl_keys::kTextPrefix + text.name)).begin());
  }
  const auto behind = std::upper_bound(source.episodes.begin(), source.episodes.end(), anchor.row,
                                       [](std::int64_t row, const Used& episode) { return row < episode.first_row; });
  const auto used = std::prev(behind);
  return {.set = set,
          .episode = static_cast<std::size_t>(used - source.episodes.begin()),
          .row = anchor.row - used->first_row};
}

}  // namespace troupe::workers
