#include "workers/learner/imitation/demonstrations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "base/hash.h"
#include "data/lerobot/parquet_table.h"
#include "data/sampling/mixture_weights.h"
#include "data/sampling/sampler.h"
#include "workers/record/recording_note.h"

namespace troupe::workers {

namespace {

constexpr const char* kState = "observation.state";
constexpr const char* kAction = "action";

std::string place_of(std::size_t set, const std::string& root) { return fmt::format("data.sets[{}] ({})", set, root); }

Result<void> check_column(const LerobotDataset& dataset, const char* column, std::int64_t width, const char* whose) {
  const LerobotFeature* feature = dataset.info().find(column);
  if (feature == nullptr || !feature->is_numbers()) {
    return Error{
        Errc::invalid_argument,
        fmt::format("{} has no column of numbers '{}', which demonstrations are made of", dataset.root(), column)};
  }
  const std::int64_t stored = feature->width();
  if (stored == width) return {};
  return Error{Errc::invalid_argument, fmt::format("{}: '{}' has {} numbers a row where {} has {}: record the "
                                                   "demonstrations in env.id with its env.profile and env.options",
                                                   dataset.root(), column, stored, whose, width)};
}

/// Observations may hold the share of an episode that is left, which another limit would make mean something else.
Result<void> check_time_limit(const LerobotDataset& dataset, std::int64_t max_steps) {
  TROUPE_ASSIGN(const std::optional<std::int64_t> recorded, recorded_time_limit(dataset.root()));
  if (!recorded || max_steps <= 0 || *recorded == max_steps) return {};
  return Error{
      Errc::invalid_argument,
      fmt::format(
          "recorded in episodes of at most {} steps where env.id has {}: set env.max_episode_steps: {}, or record the "
          "demonstrations with max_episode_steps={}",
          *recorded, max_steps, *recorded, max_steps)};
}

bool contains(const std::vector<std::int64_t>& list, std::int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

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
      max_steps_(shape.max_episode_steps),
      layout_(demonstration_layout(shape)) {}

Result<std::shared_ptr<const Demonstrations>> Demonstrations::open(const DataConfig& data, const PolicyShape& shape) {
  if (shape.critic_dim > 0 || shape.mask_dim > 0) {
    return Error{Errc::invalid_argument,
                 "env.id has fields that critics alone read, or an action mask, which demonstrations do not hold: "
                 "imitation wants an environment whose fields have the readers policy and text"};
  }
  std::shared_ptr<Demonstrations> all(new Demonstrations(shape));
  for (std::size_t set = 0; set < data.sets.size(); ++set) {
    if (auto added = all->add(data, set); !added) return added.error().with(place_of(set, data.sets[set].path));
  }
  TROUPE_TRY(all->finish(data));
  return std::shared_ptr<const Demonstrations>(std::move(all));
}

Result<void> Demonstrations::add(const DataConfig& data, std::size_t set) {
  const DataSetConfig& entry = data.sets[set];
  TROUPE_ASSIGN(const LerobotDataset dataset, LerobotDataset::open(entry.path));
  TROUPE_TRY(check_column(dataset, kState, state_dim_, "the observation of env.id"));
  TROUPE_TRY(check_column(dataset, kAction, action_dim_, "the action of env.id"));
  TROUPE_TRY(check_time_limit(dataset, max_steps_));
  const std::vector<std::int64_t>& held_out = entry.eval_episodes.empty() ? data.eval_episodes : entry.eval_episodes;
  for (const auto& [key, list] : {std::pair{"episodes", &entry.episodes}, std::pair{"eval_episodes", &held_out}}) {
    for (const std::int64_t index : *list) {
      if (dataset.find(index)) continue;
      return Error{Errc::invalid_argument, fmt::format("{} names episode {}, which is not there; it has {} episodes",
                                                       key, index, dataset.episodes().size())};
    }
  }
  Source source;
  source.root = dataset.root();
  for (std::size_t place = 0; place < dataset.episodes().size(); ++place) {
    const std::int64_t index = dataset.episodes()[place].index;
    const bool is_held_out = contains(held_out, index);
    if (!is_held_out && !entry.episodes.empty() && !contains(entry.episodes, index)) continue;
    TROUPE_TRY(read_episode(dataset, place, is_held_out, source));
  }
  if (source.train.empty())
    return Error{Errc::failed_precondition, "no episode is left to train on: see episodes and eval_episodes"};
  sources_.push_back(std::move(source));
  return {};
}

Result<void> Demonstrations::read_episode(const LerobotDataset& dataset, std::size_t place, bool held_out,
                                          Source& source) const {
  TROUPE_ASSIGN(const RowSource rows, dataset.rows(place));
  const std::int64_t length = dataset.episodes()[place].length;
  TROUPE_ASSIGN(
      const EpisodeTable table,
      read_parquet(rows.path,
                   {.vectors = {kState, kAction}, .integers = {}, .optional_vectors = {}, .optional_integers = {}},
                   {.first = rows.first_row, .count = length}));
  const VectorColumn &state = table.vectors.at(kState), &action = table.vectors.at(kAction);
  if (static_cast<std::int64_t>(state.width) != state_dim_ || static_cast<std::int64_t>(action.width) != action_dim_) {
    return Error{Errc::invalid_argument,
                 fmt::format("{}: rows have {} and {} numbers where meta/info.json says {} and {}", rows.path,
                             state.width, action.width, state_dim_, action_dim_)};
  }
  const auto first = static_cast<std::int64_t>(source.states.size()) / state_dim_;
  append_floats(state, source.states);
  append_floats(action, source.actions);
  std::vector<Anchor>& anchors = held_out ? source.eval : source.train;
  for (std::int64_t row = first; row < first + table.rows; ++row)
    anchors.push_back({.row = row, .end = first + table.rows});
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
