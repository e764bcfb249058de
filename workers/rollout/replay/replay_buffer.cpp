#include "workers/rollout/replay/replay_buffer.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/check.h"
#include "base/random.h"
#include "kernels/threads.h"
#include "model/loss/rl_keys.h"
#include "model/policy/image_dtype.h"
#include "workers/rollout/ended_rows.h"

namespace troupe::workers {

/// One item without what a draw does not need.
struct ReplayBuffer::Slab {
  std::int64_t transitions = 0;
  std::vector<float> states, finals;               ///< [(T+1)*n, D]; finals of ended rows alone
  std::vector<float> actions, rewards, continues;  ///< [T*n, ...]
  std::vector<std::int32_t> final_row;             ///< [T*n]: row of `finals`, -1 where the next row follows
  std::vector<std::vector<std::uint8_t>> images, final_images;
  std::vector<std::vector<std::uint8_t>> texts;  ///< [T*n, bytes]

  std::int64_t bytes() const {
    std::size_t all =
        4 * (states.size() + finals.size() + actions.size() + rewards.size() + continues.size() + final_row.size());
    for (const auto& image : images) all += image.size();
    for (const auto& image : final_images) all += image.size();
    for (const auto& text : texts) all += text.size();
    return static_cast<std::int64_t>(all);
  }
};

namespace {

template <class T>
void append(std::vector<T>& out, std::span<const T> from) {
  out.insert(out.end(), from.begin(), from.end());
}

}  // namespace

ReplayBuffer::Options ReplayBuffer::options_of(const JobConfig& job) {
  return {.capacity = job.algorithm.sac.replay_capacity,
          .gamma = job.algorithm.gamma,
          .semi_mdp = job.algorithm.discount == "semi_mdp",
          .always_bootstrap = job.algorithm.sac.bootstrap == "always"};
}

ReplayBuffer::ReplayBuffer(Options options, TrajectoryLayout layout, PolicyShape shape)
    : options_(options), layout_(std::move(layout)), shape_(std::move(shape)) {}

ReplayBuffer::~ReplayBuffer() = default;

void ReplayBuffer::clear(std::int64_t capacity) {
  options_.capacity = capacity;
  slabs_.clear();
  cells_.clear();
  first_slab_ = 0;
  evicted_ = bytes_ = 0;
}

std::unique_ptr<ReplayBuffer::Slab> ReplayBuffer::make_slab(std::span<const std::byte> item) const {
  const ConstTrajectoryView view(layout_, item.data());
  auto slab = std::make_unique<Slab>();
  const auto width = static_cast<std::size_t>(shape_.state_dim);
  slab->images.resize(shape_.images.size());
  slab->final_images.resize(shape_.images.size());
  for (std::int64_t t = 0; t <= layout_.calls; ++t) {
    append<float>(slab->states, view.state(t));
    for (std::size_t i = 0; i < shape_.images.size(); ++i) append<std::uint8_t>(slab->images[i], view.image(i, t));
  }
  slab->texts.resize(layout_.texts.size());
  const EndedRows ended(view);
  for (std::int64_t t = 0; t < layout_.calls; ++t) {
    append<float>(slab->actions, view.action(t));
    for (std::size_t i = 0; i < layout_.texts.size(); ++i) append<std::uint8_t>(slab->texts[i], view.text(i, t));
    for (std::int64_t row = 0; row < layout_.rows; ++row) {
      const auto r = static_cast<std::size_t>(row), chunk = static_cast<std::size_t>(layout_.chunk);
      double reward = 0, discount = 1;
      bool terminated = false;
      for (std::size_t k = 0; k < chunk; ++k) {
        reward += discount * static_cast<double>(view.reward(t)[r * chunk + k]);
        terminated |= view.terminated(t)[r * chunk + k] != 0;
        if (options_.semi_mdp && view.valid(t)[r * chunk + k] != 0) discount *= options_.gamma;
      }
      slab->rewards.push_back(static_cast<float>(reward));
      const bool cut = terminated && !options_.always_bootstrap;
      slab->continues.push_back(cut ? 0.0F : static_cast<float>(options_.semi_mdp ? discount : options_.gamma));
      const std::int32_t number = ended.number(t, row);
      slab->final_row.push_back(number);
      if (number < 0) continue;
      if (width > 0) append<float>(slab->finals, view.final_state(t).subspan(r * width, width));
      for (std::size_t i = 0; i < shape_.images.size(); ++i)
        append<std::uint8_t>(slab->final_images[i], view.final_image(i, number));
    }
  }
  return slab;
}

void ReplayBuffer::evict_oldest() {
  const Slab& oldest = *slabs_.front();
  cells_.erase(cells_.begin(), cells_.begin() + oldest.transitions);
  evicted_ += oldest.transitions;
  bytes_ -= oldest.bytes();
  slabs_.pop_front();
  ++first_slab_;
}

void ReplayBuffer::add(std::span<const std::byte> item) {
  const ConstTrajectoryView view(layout_, item.data());
  auto slab = make_slab(item);
  std::vector<std::int64_t> cells;
  for (std::int64_t t = 0; t < layout_.calls; ++t) {
    for (std::int64_t row = 0; row < layout_.rows; ++row) {
      const auto r = static_cast<std::size_t>(row);
      if (view.lost(t)[r] == 0 && view.executed(t)[r] > 0) cells.push_back(t * layout_.rows + row);
    }
  }
  slab->transitions = static_cast<std::int64_t>(cells.size());
  TROUPE_CHECK(slab->transitions <= options_.capacity,
               "the replay buffer holds at least one item (algorithm.sac.replay_capacity)");
  while (resident() + slab->transitions > options_.capacity) evict_oldest();
  const std::uint64_t number = first_slab_ + slabs_.size();
  for (const std::int64_t cell : cells) cells_.push_back({number, cell});
  bytes_ += slab->bytes();
  slabs_.push_back(std::move(slab));
}

Batch ReplayBuffer::draw(std::int64_t rows, std::uint64_t seed, std::uint64_t index) const {
  TROUPE_CHECK(resident() > 0, "a draw needs a transition");
  const std::int64_t width = shape_.state_dim, actions = layout_.chunk * layout_.action_dim;
  Batch batch;
  const auto floats = [&](const char* key, std::int64_t columns) {
    at::Tensor& tensor = batch[key] = at::empty({rows, columns}, at::kFloat);
    return tensor.mutable_data_ptr<float>();
  };
  float* const state = floats(rl_keys::kState, width);
  float* const next_state = floats(rl_keys::kNextState, width);
  float* const action = floats(rl_keys::kAction, actions);
  float* const reward = floats(rl_keys::kReward, 1);
  float* const continues = floats(rl_keys::kContinues, 1);
  CounterRng rng(seed, rng_stream::replay, index);
  std::vector<Cell> cells;
  for (std::int64_t row = 0; row < rows; ++row)
    cells.push_back(cells_[rng.below(static_cast<std::uint32_t>(resident()))]);
  // rows lie far apart, so that most of the time goes into waiting for memory: threads that stand by share it
  kernels::parallel(rows, kernels::has_team() ? kernels::num_threads() : 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const Cell& cell = cells[static_cast<std::size_t>(row)];
      const Slab& slab = slab_of(cell);
      const auto at_cell = static_cast<std::size_t>(cell.cell);
      const std::int64_t next = cell.cell + layout_.rows;  // the same environment at the next call
      const std::int32_t final_row = slab.final_row[at_cell];
      std::copy_n(slab.states.data() + cell.cell * width, width, state + row * width);
      std::copy_n(final_row < 0 ? slab.states.data() + next * width : slab.finals.data() + final_row * width, width,
                  next_state + row * width);
      std::copy_n(slab.actions.data() + cell.cell * actions, actions, action + row * actions);
      reward[row] = slab.rewards[at_cell];
      continues[row] = slab.continues[at_cell];
    }
  });
  add_images(batch, cells);
  add_texts(batch, cells);
  return batch;
}

void ReplayBuffer::add_images(Batch& batch, std::span<const Cell> cells) const {
  for (std::size_t i = 0; i < shape_.images.size(); ++i) {
    const PolicyShape::Image& image = shape_.images[i];
    const std::vector<std::int64_t> sizes{static_cast<std::int64_t>(cells.size()), image.height, image.width,
                                          image.channels};
    at::Tensor present = at::empty(sizes, image_dtype(image)), next = at::empty(sizes, image_dtype(image));
    auto* to = static_cast<std::uint8_t*>(present.mutable_data_ptr());
    auto* to_next = static_cast<std::uint8_t*>(next.mutable_data_ptr());
    const std::int64_t bytes = image.bytes();
    for (const Cell& cell : cells) {
      const Slab& slab = slab_of(cell);
      const std::int32_t final_row = slab.final_row[static_cast<std::size_t>(cell.cell)];
      to = std::copy_n(slab.images[i].data() + cell.cell * bytes, bytes, to);
      to_next = std::copy_n(final_row < 0 ? slab.images[i].data() + (cell.cell + layout_.rows) * bytes
                                          : slab.final_images[i].data() + final_row * bytes,
                            bytes, to_next);
    }
    batch[rl_keys::kImagePrefix + image.name] = present;
    batch[rl_keys::kNextImagePrefix + image.name] = next;
  }
}

void ReplayBuffer::add_texts(Batch& batch, std::span<const Cell> cells) const {
  for (std::size_t i = 0; i < layout_.texts.size(); ++i) {
    const PolicyShape::Text& text = shape_.texts[i];
    at::Tensor told = at::empty({static_cast<std::int64_t>(cells.size()), text.bytes}, at::kByte);
    auto* to = told.mutable_data_ptr<std::uint8_t>();
    for (const Cell& cell : cells)
      to = std::copy_n(slab_of(cell).texts[i].data() + cell.cell * text.bytes, text.bytes, to);
    batch[rl_keys::kTextPrefix + text.name] = told;
  }
}

}  // namespace troupe::workers
