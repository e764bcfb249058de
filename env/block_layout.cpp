#include "env/block_layout.h"

#include "base/check.h"

namespace troupe::env {

BlockLayout make_block_layout(const EnvSpec& spec, std::int64_t envs, std::int64_t chunk) {
  TROUPE_CHECK(envs >= 1 && chunk >= 1, "a block has environments and a step has actions");
  BlockLayout layout;
  const std::int64_t rows = layout.rows = envs * spec.agents;
  layout.agents = spec.agents;
  layout.chunk = chunk;
  const auto place = [&layout](std::int64_t bytes) {
    const std::int64_t offset = layout.bytes;
    layout.bytes += (bytes + 63) / 64 * 64;  // a cache line, and what vector loads like
    return offset;
  };
  for (const EnvField& field : spec.observation) layout.observation.push_back(place(rows * field.bytes()));
  for (const EnvField& field : spec.observation) layout.final_observation.push_back(place(rows * field.bytes()));
  const std::int64_t cells = rows * chunk;
  layout.reward = place(cells * 4);
  layout.terminated = place(cells);
  layout.truncated = place(cells);
  layout.valid = place(cells);
  layout.success = place(cells);
  layout.executed = place(rows * 4);
  layout.done = place(rows);
  layout.lost = place(rows);
  layout.episode = place(rows * 8);
  layout.step = place(rows * 4);
  layout.episode_return = place(rows * 8);
  layout.episode_length = place(rows * 4);
  layout.episode_success = place(rows);
  layout.info_count = static_cast<std::int64_t>(spec.info.size());
  layout.info = place(rows * layout.info_count * 8);
  layout.alive = place(spec.agents > 1 ? rows : 0);
  return layout;
}

}  // namespace troupe::env
