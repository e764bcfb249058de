#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "env/env_pool.h"
#include "tests/env/solo_env.h"

namespace troupe::testing {

inline std::unique_ptr<EnvPool> make_pool(std::shared_ptr<const EnvFactory> factory, const EnvPool::Options& options) {
  return EnvPool::make(std::move(factory), options).value();
}

/// reset() and recv() of one group.
inline EnvPool::Block begin(EnvPool& pool, std::int64_t group = 0, std::int64_t episode = 0) {
  pool.reset(group, episode).value();
  return pool.recv(group).value();
}

/// A pool whose first group has begun its first episodes.
inline std::unique_ptr<EnvPool> begun_pool(std::shared_ptr<const EnvFactory> factory, const EnvPool::Options& options) {
  auto pool = make_pool(std::move(factory), options);
  begin(*pool);
  return pool;
}

inline std::vector<int> ints(std::span<const std::uint8_t> flags) { return {flags.begin(), flags.end()}; }

/// The bytes of one row of a block's observation (or final observation).
inline std::vector<std::byte> observation_bits(const EnvSpec& spec, const BlockView& view, std::int64_t row,
                                               bool final = false) {
  std::vector<std::byte> bits;
  for (std::size_t f = 0; f < spec.observation.size(); ++f) {
    const std::int64_t bytes = spec.observation[f].bytes();
    const std::byte* begin =
        view.memory + (final ? view.layout->final_observation[f] : view.layout->observation[f]) + row * bytes;
    bits.insert(bits.end(), begin, begin + bytes);
  }
  return bits;
}

/// The first f32 field of a row.
inline std::vector<float> floats(const EnvSpec& spec, const BlockView& view, std::int64_t row, bool final = false) {
  const auto bits = observation_bits(spec, view, row, final);
  std::vector<float> values(static_cast<std::size_t>(spec.observation[0].numel()));
  std::memcpy(values.data(), bits.data(), values.size() * sizeof(float));
  return values;
}

/// What one row went through: everything that it said, step by step, and its environment's state at the end.
struct EnvHistory {
  std::vector<std::byte> bits;
  std::uint64_t state_hash = 0;
  friend bool operator==(const EnvHistory&, const EnvHistory&) = default;
};

inline void append_row(const EnvSpec& spec, const BlockView& view, std::int64_t row, EnvHistory& history) {
  const auto append = [&history](const auto& value) {
    const auto* begin = reinterpret_cast<const std::byte*>(&value);
    history.bits.insert(history.bits.end(), begin, begin + sizeof value);
  };
  const auto observation = observation_bits(spec, view, row);
  history.bits.insert(history.bits.end(), observation.begin(), observation.end());
  const auto r = static_cast<std::size_t>(row), chunk = static_cast<std::size_t>(view.layout->chunk);
  for (std::size_t cell = r * chunk; cell < (r + 1) * chunk; ++cell) {
    append(view.reward()[cell]), append(view.terminated()[cell]), append(view.truncated()[cell]);
    append(view.valid()[cell]), append(view.success()[cell]);
  }
  append(view.executed()[r]), append(view.done()[r]), append(view.lost()[r]), append(view.episode()[r]),
      append(view.step()[r]);
  append(view.episode_return()[r]), append(view.episode_length()[r]), append(view.episode_success()[r]);
  const auto info = static_cast<std::size_t>(view.layout->info_count);
  for (const double value : view.info().subspan(r * info, info)) append(value);
  if (view.done()[r] == 0) return;
  const auto last = observation_bits(spec, view, row, true);
  history.bits.insert(history.bits.end(), last.begin(), last.end());
}

/// What one row says.
inline std::vector<std::byte> row_bits(const EnvSpec& spec, const BlockView& view, std::int64_t row) {
  EnvHistory history;
  append_row(spec, view, row, history);
  return history.bits;
}

/// Steps every group of a pool with actions that depend on (environment, step) alone; the history of each row.
inline std::vector<EnvHistory> run_pool(EnvPool& pool, std::int64_t steps, std::int64_t first_env = 0) {
  const std::int64_t rows = pool.rows(), chunk = pool.layout().chunk;
  std::vector<EnvHistory> histories(static_cast<std::size_t>(rows * pool.groups()));
  for (std::int64_t g = 0; g < pool.groups(); ++g) pool.reset(g).value();
  std::vector<std::int64_t> taken(static_cast<std::size_t>(pool.groups()), 0);
  for (std::int64_t blocks = pool.groups() * (steps + 1); blocks > 0; --blocks) {
    auto block = pool.recv().value();
    const std::int64_t g = block.group();
    for (std::int64_t row = 0; row < rows; ++row)
      append_row(pool.spec(), block.view(), row, histories[static_cast<std::size_t>(g * rows + row)]);
    const std::int64_t step = taken[static_cast<std::size_t>(g)]++;
    if (step == steps) continue;
    std::vector<float> actions;
    for (std::int64_t i = 0; i < pool.envs(); ++i) {
      const auto env = static_cast<std::uint64_t>(first_env + g * pool.envs() + i);
      const auto chosen = random_actions(pool.spec(), chunk, 1000 + env, static_cast<std::uint64_t>(step));
      actions.insert(actions.end(), chosen.begin(), chosen.end());
    }
    pool.send(g, actions, step).value();
  }
  for (std::int64_t i = 0; i < rows * pool.groups(); ++i)
    histories[static_cast<std::size_t>(i)].state_hash = pool.state_hash(i / pool.spec().agents);
  return histories;
}

}  // namespace troupe::testing
