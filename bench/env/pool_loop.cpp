#include "bench/env/pool_loop.h"

#include <utility>

#include "base/hash.h"
#include "bench/support/failures.h"
#include "env/env_pool.h"

namespace troupe::bench {
namespace {

/// Everything of a block but final observations of rows that did not end, which hold whatever was there.
void add_block(Xxh3Stream& bits, const EnvSpec& spec, const BlockView& view) {
  const auto rows = static_cast<std::size_t>(view.layout->rows);
  for (std::size_t f = 0; f < spec.observation.size(); ++f) {
    const auto bytes = static_cast<std::size_t>(spec.observation[f].bytes());
    bits.update({view.memory + view.layout->observation[f], rows * bytes});
    for (std::size_t row = 0; row < rows; ++row) {
      if (view.done()[row] != 0) bits.update({view.memory + view.layout->final_observation[f] + row * bytes, bytes});
    }
  }
  const auto add = [&bits](auto... arrays) { (bits.update(std::as_bytes(arrays)), ...); };
  add(view.reward(), view.terminated(), view.truncated(), view.valid(), view.success(), view.executed(), view.done(),
      view.lost(), view.episode(), view.step(), view.episode_return(), view.episode_length(), view.episode_success(),
      view.info());
}

}  // namespace

StepRate run_pool(const SimCase& c, std::shared_ptr<const EnvFactory> factory, const ActionTable& actions) {
  const auto pool =
      must(EnvPool::make(std::move(factory), {.num_envs = c.num_envs, .groups = c.groups, .threads = c.threads}));
  for (std::int64_t g = 0; g < c.groups; ++g) must(pool->reset(g));
  for (std::int64_t g = 0; g < c.groups; ++g) must(pool->recv(g));
  std::vector<std::int64_t> sent(static_cast<std::size_t>(c.groups));
  const auto send = [&](std::int64_t g) {
    const auto all = actions.at(sent[static_cast<std::size_t>(g)]++);
    const std::size_t width = all.size() / static_cast<std::size_t>(c.groups);
    must(pool->send(g, all.subspan(static_cast<std::size_t>(g) * width, width)));
  };
  const StepClock clock;
  if (c.groups == 1) {
    for (std::int64_t step = 0; step < c.steps; ++step) must(pool->step(0, actions.at(step)));
    return clock.rate(c.num_envs * c.steps);
  }
  for (std::int64_t g = 0; g < c.groups; ++g) send(g);
  for (std::int64_t received = 0; received < c.groups * c.steps; ++received) {
    const auto block = must(pool->recv());
    if (sent[static_cast<std::size_t>(block.group())] < c.steps) send(block.group());
  }
  return clock.rate(c.num_envs * c.steps);
}

std::string pool_bits(const SimCase& c, std::shared_ptr<const EnvFactory> factory, const ActionTable& actions) {
  const auto pool = must(EnvPool::make(std::move(factory), {.num_envs = c.num_envs, .threads = c.threads}));
  Xxh3Stream bits;
  must(pool->reset(0));
  add_block(bits, pool->spec(), must(pool->recv(0)).view());
  for (std::int64_t step = 0; step < c.steps; ++step)
    add_block(bits, pool->spec(), must(pool->step(0, actions.at(step))).view());
  for (std::int64_t i = 0; i < c.num_envs; ++i) {
    const std::uint64_t state = pool->state_hash(i);
    bits.update(std::as_bytes(std::span(&state, 1)));
  }
  return bits.hex();
}

}  // namespace troupe::bench
