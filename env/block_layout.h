#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "env/env_spec.h"

namespace troupe::env {

/// Where everything of one block's transition lies in one buffer (docs/env.md#the-buffer): some environments, one
/// policy step of K actions. A function of (spec, environments, K) alone, so that simulators and rollout workers agree
/// without talking. Structure of arrays in the order below; every array begins at a multiple of 64 bytes. Row i is
/// agent i mod P of the block's environment i / P; a field whose comment does not name the agent has the same value in
/// all rows of an environment (docs/env.md).
struct BlockLayout {
  /// Rows n of the block: one for each agent of each environment.
  std::int64_t rows = 0;
  /// P: rows of an environment.
  std::int64_t agents = 1;
  /// Actions K of a policy step.
  std::int64_t chunk = 1;
  /// Offset of each field [n, ...]: after the step, and after a reset where one happened.
  std::vector<std::int64_t> observation;
  /// Offset of each field [n, ...]: of rows that ended, the observation at which they did; of others whatever was
  /// there.
  std::vector<std::int64_t> final_observation;
  /// f32 [n,K] of the agent, by the block's RewardRules; 0 after the end of an episode.
  std::int64_t reward = 0;
  /// u8 [n,K]; where an agent dies before the others, of its row alone.
  std::int64_t terminated = 0;
  /// u8 [n,K]; never with terminated.
  std::int64_t truncated = 0;
  /// u8 [n,K]: the agent's action was executed.
  std::int64_t valid = 0;
  /// u8 [n,K].
  std::int64_t success = 0;
  /// i32 [n]: control steps of the environment.
  std::int64_t executed = 0;
  /// u8 [n]: an episode ended in this step; final_observation holds its last observation.
  std::int64_t done = 0;
  /// u8 [n]: the environment failed and was made anew; the row is truncated and must not be trained.
  std::int64_t lost = 0;
  /// i64 [n]: of the observation.
  std::int64_t episode = 0;
  /// i32 [n]: control steps since the reset, at the observation.
  std::int64_t step = 0;
  /// f64 [n]: sum of the environment's own rewards, the mean over its agents, where done of the episode that ended,
  /// else of the one under way; 0 in rows that are frozen.
  std::int64_t episode_return = 0;
  /// i32 [n]: where done.
  std::int64_t episode_length = 0;
  /// u8 [n]: where done; bit 0 success at any step, bit 1 at the last.
  std::int64_t episode_success = 0;
  /// f64 [n, EnvSpec::info]: of the last executed action; 0 where none was.
  std::int64_t info = 0;
  /// Values of one row's info.
  std::int64_t info_count = 0;
  /// u8 [n], where P is above 1: the agent acts at the next step. A row whose agent is dead goes on without it: its
  /// observation is what the environment says, its actions are ignored, valid is 0.
  std::int64_t alive = 0;
  /// Size of the buffer, a multiple of 64; it begins at a multiple of 64.
  std::int64_t bytes = 0;
};

/// Of `envs` environments; it and `chunk` are at least 1.
BlockLayout make_block_layout(const EnvSpec& spec, std::int64_t envs, std::int64_t chunk);

/// One block in memory: typed views by BlockLayout. Does not own; copyable.
struct BlockView {
  const BlockLayout* layout = nullptr;
  std::byte* memory = nullptr;

  template <class T>
  T* at(std::int64_t offset) const {
    return reinterpret_cast<T*>(memory + offset);
  }
  std::span<float> reward() const { return {at<float>(layout->reward), cells()}; }
  std::span<std::uint8_t> terminated() const { return {at<std::uint8_t>(layout->terminated), cells()}; }
  std::span<std::uint8_t> truncated() const { return {at<std::uint8_t>(layout->truncated), cells()}; }
  std::span<std::uint8_t> valid() const { return {at<std::uint8_t>(layout->valid), cells()}; }
  std::span<std::uint8_t> success() const { return {at<std::uint8_t>(layout->success), cells()}; }
  std::span<std::int32_t> executed() const { return {at<std::int32_t>(layout->executed), num_rows()}; }
  std::span<std::uint8_t> done() const { return {at<std::uint8_t>(layout->done), num_rows()}; }
  std::span<std::uint8_t> lost() const { return {at<std::uint8_t>(layout->lost), num_rows()}; }
  std::span<std::int64_t> episode() const { return {at<std::int64_t>(layout->episode), num_rows()}; }
  std::span<std::int32_t> step() const { return {at<std::int32_t>(layout->step), num_rows()}; }
  std::span<double> episode_return() const { return {at<double>(layout->episode_return), num_rows()}; }
  std::span<std::int32_t> episode_length() const { return {at<std::int32_t>(layout->episode_length), num_rows()}; }
  std::span<std::uint8_t> episode_success() const { return {at<std::uint8_t>(layout->episode_success), num_rows()}; }
  std::span<double> info() const {
    return {at<double>(layout->info), num_rows() * static_cast<std::size_t>(layout->info_count)};
  }
  /// Empty where an environment has one agent, which always is.
  std::span<std::uint8_t> alive() const {
    return {at<std::uint8_t>(layout->alive), layout->agents > 1 ? num_rows() : 0};
  }

 private:
  std::size_t num_rows() const { return static_cast<std::size_t>(layout->rows); }
  std::size_t cells() const { return static_cast<std::size_t>(layout->rows * layout->chunk); }
};

}  // namespace troupe::env
