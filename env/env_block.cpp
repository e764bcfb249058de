#include "env/env_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "base/check.h"
#include "env/block_lanes.h"

namespace troupe::env {

namespace {

Error refused(const std::string& what) { return {Errc::invalid_argument, "env: " + what}; }

Result<void> check(const EnvSpec& spec, const EnvBlock::Options& o) {
  if (o.first_env < 0) return refused(fmt::format("the first environment is {}; wanted 0 or more", o.first_env));
  if (o.envs < 1) return refused(fmt::format("a block of {} environments; wanted at least 1", o.envs));
  if (o.chunk < 1) return refused(fmt::format("env.chunk is {}; wanted at least 1", o.chunk));
  if (o.exec_steps < 0 || o.exec_steps > o.chunk) {
    return refused(
        fmt::format("env.exec_steps is {} and env.chunk {}; wanted 0 (all) to env.chunk", o.exec_steps, o.chunk));
  }
  if (o.group_size < 1 || o.envs % o.group_size != 0 || o.first_env % o.group_size != 0) {
    return refused(
        fmt::format("env.group_size is {}; wanted a divisor of the {} environments of a block and of its first, {}",
                    o.group_size, o.envs, o.first_env));
  }
  if (o.max_steps < 0) return refused(fmt::format("env.max_episode_steps is {}; wanted 0 or more", o.max_steps));
  const auto size = static_cast<std::size_t>(spec.action.size);
  if (spec.action.is_discrete() ? spec.action.size != 1
                                : spec.action.low.size() != size || spec.action.high.size() != size) {
    return refused(fmt::format("{} has an action of size {} with {} lower and {} upper bounds", spec.id,
                               spec.action.size, spec.action.low.size(), spec.action.high.size()));
  }
  for (std::size_t i = 0; i < spec.action.low.size(); ++i) {
    if (!(spec.action.low[i] <= spec.action.high[i])) {
      return refused(
          fmt::format("{} has action bounds {} to {} at {}", spec.id, spec.action.low[i], spec.action.high[i], i));
    }
  }
  return {};
}

/// Environments in batches of lanes_ each, of which the last may have fewer; a batch is a task of the executor.
class ExecutedBlock final : public EnvBlock {
 public:
  ExecutedBlock(BlockRules rules, std::int64_t lanes, std::vector<std::unique_ptr<BatchEnv>> batches,
                Executor& executor)
      : rules_(std::move(rules)),
        layout_(make_block_layout(rules_.factory->spec(), rules_.options.envs, rules_.options.chunk)),
        lanes_(lanes),
        actions_(static_cast<std::size_t>(layout_.rows * layout_.chunk * rules_.factory->spec().action.size)),
        executor_(executor) {
    for (auto& batch : batches)
      batches_.emplace_back(rules_, lanes_ * static_cast<std::int64_t>(batches_.size()), std::move(batch));
  }

  const BlockLayout& layout() const override { return layout_; }

  void reset(std::int64_t episode, BlockView out, std::function<void()> done) override {
    claim();
    begin(out, std::move(done));
    run([this, episode](BlockLanes& batch) { batch.reset(episode, out_); });
  }

  void reset_to_seed(std::uint64_t seed, BlockView out, std::function<void()> done) override {
    TROUPE_CHECK(rules_.options.reset_mode == ResetMode::episode || rules_.options.reset_mode == ResetMode::fixed,
                 "rows of a block that go on by themselves have the seeds of its options");
    claim();
    begin(out, std::move(done));
    run([this, seed](BlockLanes& batch) { batch.reset_to_seed(seed, out_); });
  }

  void step(std::span<const float> actions, BlockView out, std::function<void()> done,
            Executor::Caller caller) override {
    TROUPE_CHECK(actions.size() == actions_.size(),
                 fmt::format("a step takes {} numbers, not {}", actions_.size(), actions.size()));
    claim();
    // before begin(), which clears memory that they may lie in
    std::memcpy(actions_.data(), actions.data(), actions.size_bytes());
    begin(out, std::move(done));
    run([this](BlockLanes& batch) { batch.step(actions_.data(), out_); }, caller);
  }

  Counters counters() const override {
    Counters sum;
    for (const BlockLanes& batch : batches_) sum += batch.counters();
    return sum;
  }

  const std::string& why_lost(std::int64_t i) const override { return batch_of(i).why_lost(i % lanes_); }

  std::uint64_t state_hash(std::int64_t i) const override { return batch_of(i).state_hash(i % lanes_); }

  Result<void> render(std::int64_t i, const std::string& camera, RenderTarget out) override {
    return batch_of(i).render(i % lanes_, camera, out);
  }
  Result<void> advise(std::int64_t i, std::span<float> action) override {
    return batch_of(i).advise(i % lanes_, action);
  }

 private:
  const BlockLanes& batch_of(std::int64_t env) const { return batches_.at(static_cast<std::size_t>(env / lanes_)); }
  BlockLanes& batch_of(std::int64_t env) { return batches_.at(static_cast<std::size_t>(env / lanes_)); }

  void claim() { TROUPE_CHECK(!busy_.exchange(true, std::memory_order_acquire), "one step of a block at a time"); }
  void begin(BlockView out, std::function<void()> done) {
    out.layout = &layout_;
    out_ = out;
    // all arrays behind the observations: rows write what is not 0
    std::memset(out.memory + layout_.reward, 0, static_cast<std::size_t>(layout_.bytes - layout_.reward));
    done_ = std::move(done);
  }
  template <class OfBatch>
  void run(OfBatch of_batch, Executor::Caller caller = Executor::Caller::leaves) {
    executor_.run(
        static_cast<std::int64_t>(batches_.size()),
        [this, of_batch](std::int64_t i) { of_batch(batches_[static_cast<std::size_t>(i)]); }, [this] { finish(); },
        caller);
  }
  void finish() {
    const std::function<void()> done = std::move(done_);
    busy_.store(false, std::memory_order_release);
    done();
  }

  const BlockRules rules_;
  const BlockLayout layout_;
  const std::int64_t lanes_;
  std::vector<float> actions_;  // of the step under way
  std::deque<BlockLanes> batches_;
  Executor& executor_;
  std::atomic<bool> busy_{false};
  BlockView out_;
  std::function<void()> done_;
};

}  // namespace

Result<std::unique_ptr<EnvBlock>> EnvBlock::make(std::shared_ptr<const EnvFactory> factory, Options options,
                                                 Executor& executor) {
  const EnvSpec& spec = factory->spec();
  TROUPE_TRY(check(spec, options));
  if (options.exec_steps == 0) options.exec_steps = options.chunk;
  if (options.max_steps == 0) options.max_steps = spec.max_steps;
  if (factory->max_lanes() < 1)
    return Error{Errc::internal, fmt::format("{}: max_lanes() is {}; wanted 1 or more", spec.id, factory->max_lanes())};
  // as many as leave work for every thread
  const std::int64_t cuts =
      factory->batches_per_block() > 0 ? factory->batches_per_block() : std::max<std::int64_t>(1, executor.threads());
  const std::int64_t lanes = std::min(factory->max_lanes(), (options.envs + cuts - 1) / cuts);
  std::vector<std::unique_ptr<BatchEnv>> batches;
  for (std::int64_t env = 0; env < options.envs; env += lanes) {
    TROUPE_ASSIGN(auto batch, make_lanes(*factory, std::min(lanes, options.envs - env)));
    batches.push_back(std::move(batch));
  }
  BlockRules rules{std::move(factory), options, {}, {}, 0};
  for (const EnvField& field : spec.observation) {
    rules.agent_field_bytes.push_back(field.bytes());
    rules.field_bytes.push_back(spec.agents * field.bytes());
    rules.observation_bytes += rules.field_bytes.back();
  }
  return std::unique_ptr<EnvBlock>(
      std::make_unique<ExecutedBlock>(std::move(rules), lanes, std::move(batches), executor));
}

}  // namespace troupe::env
