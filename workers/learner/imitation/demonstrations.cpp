#include "workers/learner/imitation/demonstrations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/hash.h"
#include "data/sampling/mixture_weights.h"
#include "data/sampling/sampler.h"
#include "workers/learner/imitation/recorded_set.h"

namespace troupe::workers {

namespace {

void append_floats(const VectorColumn& column, std::vector<float>& out) {
  for (const double value : column.values) out.push_back(static_cast<float>(value));
}

template <class T>
std::span<const std::byte> raw(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

}  // namespace

SampleLayout demonstration_layout(const PolicyShape& shape) {
  SampleLayout layout;
  layout.append("state", FieldType::f32, {shape.state_dim});
  layout.append("action", FieldType::f32, {shape.chunk, shape.action_dim});
  layout.append("counts", FieldType::u8, {shape.chunk});
  layout.append("position", FieldType::i64, {1});
  return layout;
}

Demonstrations::Demonstrations(const PolicyShape& shape)
    : state_dim_(shape.state_dim),
      action_dim_(shape.action_dim),
      chunk_(shape.chunk),
      layout_(demonstration_layout(shape)) {}

Result<std::shared_ptr<const Demonstrations>> Demonstrations::open(const DataConfig& data, const PolicyShape& shape) {
  TROUPE_ASSIGN(const std::vector<RecordedSet> sets, RecordedSet::open_all(data, shape));
  std::shared_ptr<Demonstrations> all(new Demonstrations(shape));
  for (const RecordedSet& set : sets) TROUPE_TRY(all->add(set));
  TROUPE_TRY(all->finish(data));
  return std::shared_ptr<const Demonstrations>(std::move(all));
}

Result<void> Demonstrations::add(const RecordedSet& set) {
  Source source;
  source.root = set.root();
  for (const RecordedSet::Episode& episode : set.episodes()) {
    TROUPE_ASSIGN(const EpisodeTable table, set.read(episode));
    const auto first = static_cast<std::int64_t>(source.states.size()) / state_dim_;
    append_floats(table.vectors.at(kStateColumn), source.states);
    append_floats(table.vectors.at(kActionColumn), source.actions);
    std::vector<Anchor>& anchors = episode.is_held_out ? source.eval : source.train;
    for (std::int64_t row = first; row < first + table.rows; ++row)
      anchors.push_back({.row = row, .end = first + table.rows});
  }
  sources_.push_back(std::move(source));
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
  }
  const std::vector<double> weights = mixture_weights(data, samples);
  order_ = MixtureOrder(weights);
  hash.update(raw(weights));
  hash.update(raw(std::vector<std::int64_t>{state_dim_, action_dim_, chunk_}));
  fingerprint_ = hash.hex();
  return {};
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
             (source.train.size() + source.eval.size()) * sizeof(Anchor);
  }
  return static_cast<std::int64_t>(bytes);
}

std::vector<std::string> Demonstrations::roots() const {
  std::vector<std::string> all;
  for (const Source& source : sources_) all.push_back(source.root);
  return all;
}

Result<void> Demonstrations::build(Split split, std::int64_t position, std::uint64_t seed, std::int64_t max_eval,
                                   std::span<std::byte> slot) const {
  if (position < 0)
    return Error{Errc::invalid_argument, fmt::format("position {} of demonstrations; positions begin at 0", position)};
  if (split == Split::train) {
    const MixtureOrder::Draw draw = order_.draw(seed, static_cast<std::uint64_t>(position));
    const Source& source = sources_[draw.dataset];
    const SampleDraw sample =
        draw_sample(MixtureOrder::inner_seed(seed, draw.dataset), draw.inner, source.train.size());
    write(source, source.train[sample.index], position, slot);
    return {};
  }
  const std::int64_t count = eval_size(max_eval);
  if (position >= count) return Error{Errc::invalid_argument, fmt::format("held-out sample {} of {}", position, count)};
  auto index = static_cast<std::size_t>(position * eval_size(std::numeric_limits<std::int64_t>::max()) / count);
  for (const Source& source : sources_) {
    if (index < source.eval.size()) {
      write(source, source.eval[index], position, slot);
      break;
    }
    index -= source.eval.size();
  }
  return {};
}

void Demonstrations::write(const Source& source, const Anchor& anchor, std::int64_t position,
                           std::span<std::byte> slot) const {
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
}

}  // namespace troupe::workers
