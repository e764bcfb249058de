#include "bench/env/pool_loop.h"

#include <utility>

#include "bench/support/failures.h"
#include "env/env_pool.h"

namespace troupe::bench {
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

}  // namespace troupe::bench
