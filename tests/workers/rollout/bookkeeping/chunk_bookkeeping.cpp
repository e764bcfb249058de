#include "tests/workers/rollout/bookkeeping/chunk_bookkeeping.h"

#include <algorithm>

#include "base/check.h"

namespace troupe::workers {

namespace {

void collapse(std::vector<std::uint8_t>& flags) {
  const bool any = std::any_of(flags.begin(), flags.end(), [](std::uint8_t f) { return f != 0; });
  std::fill(flags.begin(), flags.end(), std::uint8_t{0});
  flags.back() = any ? 1 : 0;
}

}  // namespace

ChunkBookkeeper::ChunkBookkeeper(const ChunkRules& rules) : rules_(rules), shaper_(rules.shaping) {
  TROUPE_CHECK(rules.chunk > 0, "a chunk has at least one action");
}

bool ChunkBookkeeper::collapses_flags() const {
  return rules_.auto_reset || rules_.ignore_terminations || (rules_.parity && rules_.parity_collapses_always);
}

void ChunkBookkeeper::step(const StepSignal& signal) {
  TROUPE_CHECK(wants_step() && row_.rewards.size() < static_cast<std::size_t>(rules_.chunk),
               "the chunk has an action left to execute");
  ++metrics_.episode_len;
  const double reward = shaper_.shape(signal.reward);
  if (!rules_.return_until_success || !metrics_.success_once) metrics_.episode_return += reward;
  metrics_.success_once |= signal.success;
  metrics_.success_at_end = signal.success;
  metrics_.fail_once |= signal.fail;
  metrics_.fail_at_end = signal.fail;
  if (steps_to_success_ == 0 && signal.success) steps_to_success_ = metrics_.episode_len;
  const auto counted = rules_.return_until_success && steps_to_success_ > 0 ? steps_to_success_ : metrics_.episode_len;
  metrics_.reward = metrics_.episode_return / counted;

  const bool terminated = signal.is_terminal && !rules_.ignore_terminations;
  const bool truncated = rules_.max_episode_steps > 0 && metrics_.episode_len >= rules_.max_episode_steps;
  row_.rewards.push_back(reward);
  row_.terminated.push_back(terminated ? 1 : 0);
  row_.truncated.push_back(truncated ? 1 : 0);
  row_.valid.push_back(1);
  row_.is_done |= terminated || truncated;
  is_over_ |= terminated || truncated;
}

ChunkRecord ChunkBookkeeper::finish() {
  TROUPE_CHECK(is_over_ || row_.rewards.size() == static_cast<std::size_t>(rules_.chunk),
               "every action of the chunk was executed");
  const auto size = static_cast<std::size_t>(rules_.chunk);
  row_.rewards.resize(size, 0.0);
  row_.terminated.resize(size, 0);
  row_.truncated.resize(size, 0);
  row_.valid.resize(size, 0);
  if (collapses_flags()) {
    collapse(row_.terminated);
    collapse(row_.truncated);
  }
  row_.episode = metrics_;
  ChunkRecord out = std::move(row_);
  row_ = {};
  if (rules_.auto_reset && out.is_done) restart();
  return out;
}

void ChunkBookkeeper::restart() {
  shaper_.restart();
  metrics_ = {};
  steps_to_success_ = 0;
  is_over_ = false;
}

}  // namespace troupe::workers
