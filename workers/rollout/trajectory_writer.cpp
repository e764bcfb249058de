#include "workers/rollout/trajectory_writer.h"

#include <algorithm>
#include <cstring>

#include "workers/rollout/ended_rows.h"

namespace troupe::workers {

namespace {
template <class T>
void copy(std::span<const T> from, std::span<T> to) {
  std::copy(from.begin(), from.end(), to.begin());
}
template <class T>
std::span<const T> constant(std::span<T> span) {
  return span;
}
}  // namespace

TrajectoryWriter::TrajectoryWriter(const JobConfig& job, const EnvSpec& spec, const TrajectoryLayout& layout)
    : layout_(layout),
      block_(make_block_layout(spec, layout.envs(), layout.chunk)),
      parts_(observation_parts(spec)),
      gamma_(job.algorithm.gamma),
      per_action_(job.algorithm.discount == "semi_mdp"),
      ends_with_item_(job.env.reset_mode != "auto") {}

BlockHistory TrajectoryWriter::new_history() const {
  const auto n = static_cast<std::size_t>(layout_.rows);
  std::vector<std::vector<float>> memory;
  for (const RecordField& field : layout_.policy_memory)
    memory.emplace_back(static_cast<std::size_t>(field.bytes) / sizeof(float));
  return {.discounted = std::vector<double>(n),
          .success = std::vector<std::uint8_t>(n),
          .finished = std::vector<std::uint8_t>(n),
          .observed = Moments(static_cast<std::size_t>(layout_.state_dim)),
          .returned = Moments(1),
          .memory = std::move(memory)};
}

void TrajectoryWriter::begin(TrajectoryView item, std::int64_t round, std::int64_t block, bool continues,
                             BlockHistory& history) const {
  std::memset(item.memory(), 0, static_cast<std::size_t>(layout_.fixed_bytes));
  item.head() = {.round = round, .block = block, .min_version = -1, .max_version = -1, .continues = continues ? 1 : 0};
  history.observed.clear();
  history.returned.clear();
  if (!continues) {
    std::fill(history.discounted.begin(), history.discounted.end(), 0.0);
    std::fill(history.success.begin(), history.success.end(), std::uint8_t{0});
    std::fill(history.finished.begin(), history.finished.end(), std::uint8_t{0});
    for (auto& memory : history.memory) std::fill(memory.begin(), memory.end(), 0.0F);
  }
  for (std::size_t i = 0; i < history.memory.size(); ++i)
    std::ranges::copy(history.memory[i], item.all<float>(layout_.policy_memory[i]).begin());
}

void TrajectoryWriter::gather(std::span<const std::int64_t> offsets, const BlockView& from, std::int64_t row,
                              float* state) const {
  for (const auto& part : parts_.vectors) {
    const std::int64_t bytes = part.numel * env_dtype_bytes(part.dtype);
    part.write(from.at<std::byte>(offsets[part.field]) + row * bytes, state);
  }
}

void TrajectoryWriter::observe(TrajectoryView item, std::int64_t call, const BlockView& from, const StateScale& scale,
                               BlockHistory& history) const {
  const std::int64_t D = layout_.state_dim;
  const auto state = item.state(call);
  for (std::int64_t row = 0; row < layout_.rows && D > 0; ++row)
    gather(block_.observation, from, row, state.data() + row * D);
  if (layout_.observed.is_present() && call < layout_.calls) {
    // A frozen row shows the same observation over and over, and a dead agent's none: the policy did not meet it.
    const auto alive = from.alive();
    const bool all_live = std::find(alive.begin(), alive.end(), 0) == alive.end();
    if (all_live && std::find(history.finished.begin(), history.finished.end(), 1) == history.finished.end()) {
      history.observed.add(state);
    } else {
      for (std::int64_t row = 0; row < layout_.rows; ++row) {
        const auto index = static_cast<std::size_t>(row);
        if (history.finished[index] != 0 || (!all_live && alive[index] == 0)) continue;
        history.observed.add(state.subspan(static_cast<std::size_t>(row * D), static_cast<std::size_t>(D)));
      }
    }
  }
  scale.apply(state);
  for (std::size_t i = 0; i < parts_.images.size(); ++i) {
    const auto& part = parts_.images[i];
    const auto* const source = from.at<std::uint8_t>(block_.observation[part.field]);
    std::memcpy(item.image(i, call).data(), source, static_cast<std::size_t>(layout_.rows * part.bytes));
  }
  for (std::size_t i = 0; i < layout_.texts.size(); ++i) {
    const auto& part = parts_.texts[i];
    const auto* const source = from.at<std::uint8_t>(block_.observation[part.field]);
    std::memcpy(item.text(i, call).data(), source, static_cast<std::size_t>(layout_.rows * part.bytes));
  }
}

void TrajectoryWriter::transition(TrajectoryView item, std::int64_t call, const BlockView& from,
                                  BlockHistory& history) const {
  const auto n = static_cast<std::size_t>(layout_.rows), K = static_cast<std::size_t>(layout_.chunk);
  copy(constant(from.reward()), item.reward(call));
  copy(constant(from.terminated()), item.terminated(call));
  copy(constant(from.truncated()), item.truncated(call));
  copy(constant(from.valid()), item.valid(call));
  copy(constant(from.success()), item.success(call));
  copy(constant(from.executed()), item.executed(call));
  copy(constant(from.done()), item.done(call));
  copy(constant(from.lost()), item.lost(call));
  std::vector<float> counted;
  counted.reserve(n);
  for (std::size_t row = 0; row < n; ++row) {
    double& discounted = history.discounted[row];
    bool acted = false;
    if (!per_action_) discounted *= gamma_;
    for (std::size_t k = 0; k < static_cast<std::size_t>(from.executed()[row]); ++k) {
      const std::size_t cell = row * K + k;
      const bool success = from.success()[cell] != 0;  // of the environment, whether or not this agent lives
      history.success[row] = static_cast<std::uint8_t>((history.success[row] & 1) | (success ? 3 : 0));
      if (from.valid()[cell] == 0) continue;
      acted = true;
      if (per_action_) discounted *= gamma_;
      discounted += from.reward()[cell];
    }
    const bool is_lost = from.lost()[row] != 0, is_done = from.done()[row] != 0;
    const bool is_first = layout_.is_first(static_cast<std::int64_t>(row));
    if (is_first) item.head().env_steps += from.executed()[row];
    if (acted && !is_lost) counted.push_back(static_cast<float>(discounted));
    if (!is_done) continue;
    if (!is_lost && is_first) {
      item.ended(call)[row] = 1;
      item.episode_return(call)[row] = from.episode_return()[row];
      item.episode_length(call)[row] = from.episode_length()[row];
      item.episode_success(call)[row] = from.episode_success()[row];
    }
    history.finished[row] = ends_with_item_ ? 1 : 0;
    history.success[row] = 0;
    discounted = 0;
  }
  if (layout_.returned.is_present()) history.returned.add(counted);
}

void TrajectoryWriter::forget(const BlockView& from, BlockHistory& history, FinalRows& finals) const {
  finals.memory.resize(history.memory.size());
  for (std::size_t i = 0; i < history.memory.size(); ++i) {
    std::vector<float>&memory = history.memory[i], &kept = finals.memory[i];
    const auto width = static_cast<std::int64_t>(memory.size()) / layout_.rows;
    kept.clear();
    for (std::int64_t row = 0; row < layout_.rows; ++row) {
      const bool is_lost = from.lost()[static_cast<std::size_t>(row)] != 0;
      if (!is_lost && from.done()[static_cast<std::size_t>(row)] == 0) continue;
      const auto own = memory.begin() + row * width;
      if (!is_lost) kept.insert(kept.end(), own, own + width);
      std::fill_n(own, width, 0.0F);
    }
  }
}

void TrajectoryWriter::finals(TrajectoryView item, std::int64_t call, const BlockView& from, const StateScale& scale,
                              BlockHistory& history, FinalRows& finals) const {
  const std::int64_t D = layout_.state_dim;
  finals.rows.clear();
  for (std::int64_t row = 0; row < layout_.rows; ++row) {
    const auto index = static_cast<std::size_t>(row);
    if (from.done()[index] != 0 && from.lost()[index] == 0) finals.rows.push_back(row);
  }
  forget(from, history, finals);
  finals.state.resize(finals.rows.size() * static_cast<std::size_t>(D));
  finals.images.resize(parts_.images.size());
  if (finals.rows.empty()) return;
  for (std::size_t i = 0; i < finals.rows.size() && D > 0; ++i) {
    gather(block_.final_observation, from, finals.rows[i], finals.state.data() + i * static_cast<std::size_t>(D));
  }
  scale.apply(finals.state);
  for (std::size_t i = 0; i < finals.rows.size() && layout_.final_state.is_present(); ++i) {
    std::copy_n(finals.state.data() + i * static_cast<std::size_t>(D), D,
                item.final_state(call).data() + finals.rows[i] * D);
  }
  const bool keeps_images = !layout_.final_images.empty();
  const std::int64_t first = keeps_images ? count_ended_rows(ConstTrajectoryView(layout_, item.memory()), call) : 0;
  for (std::size_t p = 0; p < parts_.images.size(); ++p) {
    const auto bytes = static_cast<std::size_t>(parts_.images[p].bytes);
    finals.images[p].resize(finals.rows.size() * bytes);
    for (std::size_t i = 0; i < finals.rows.size(); ++i) {
      const auto row = static_cast<std::size_t>(finals.rows[i]);
      const auto* const source = from.at<std::uint8_t>(block_.final_observation[parts_.images[p].field]) + row * bytes;
      std::memcpy(finals.images[p].data() + i * bytes, source, bytes);
      if (keeps_images) std::memcpy(item.final_image(p, first + static_cast<std::int64_t>(i)).data(), source, bytes);
    }
  }
}

void TrajectoryWriter::finish(TrajectoryView item, const BlockView& from, BlockHistory& history) const {
  const std::int64_t last = layout_.calls - 1;
  for (std::size_t row = 0; row < static_cast<std::size_t>(layout_.rows) && ends_with_item_; ++row) {
    if (!layout_.is_first(static_cast<std::int64_t>(row)) || history.finished[row] != 0 || from.step()[row] == 0)
      continue;
    item.ended(last)[row] = 1;
    item.episode_return(last)[row] = from.episode_return()[row];
    item.episode_length(last)[row] = from.step()[row];
    item.episode_success(last)[row] = history.success[row];
  }
  if (layout_.observed.is_present()) copy(history.observed.numbers(), item.observed());
  if (layout_.returned.is_present()) copy(history.returned.numbers(), item.returned());
  TrajectoryHead& head = item.head();
  for (const std::int64_t version : item.all<std::int64_t>(layout_.version)) {
    if (version < 0) continue;
    head.min_version = head.min_version < 0 ? version : std::min(head.min_version, version);
    head.max_version = std::max(head.max_version, version);
  }
}

}  // namespace troupe::workers
