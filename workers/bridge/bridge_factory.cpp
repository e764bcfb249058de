#include "workers/bridge/bridge_factory.h"

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"
#include "env/make_allowance.h"
#include "env/registry/registry.h"
#include "workers/bridge/bridge_env.h"
#include "workers/bridge/describe.h"
#include "workers/bridge/worker_pool.h"

namespace troupe::workers {

namespace {

constexpr std::int64_t kMostLanes = 1024, kMostBytes = 256 << 20;

class BridgeFactory final : public EnvFactory {
 public:
  BridgeFactory(WorkerPool::Setup setup, std::chrono::milliseconds step_timeout)
      : setup_(std::move(setup)), step_timeout_(step_timeout) {
    std::int64_t bytes = 8 * static_cast<std::int64_t>(setup_.spec.info.size() + 4);
    for (const EnvField& field : setup_.spec.observation) bytes += setup_.spec.agents * field.bytes();
    bytes += setup_.spec.agents * 16;  // rewards, and who is alive
    max_lanes_ = std::clamp<std::int64_t>(kMostBytes / bytes, 1, kMostLanes);
    // and the names and error texts around them
    setup_.max_message_bytes = static_cast<std::size_t>(max_lanes_ * (bytes + 4096)) + (1 << 20);
  }

  const EnvSpec& spec() const noexcept override { return setup_.spec; }
  std::int64_t max_lanes() const noexcept override { return max_lanes_; }
  bool waits_for_others() const noexcept override { return true; }
  std::int64_t batches_per_block() const noexcept override { return setup_.bridge.workers; }
  bool may_advise() const noexcept override { return setup_.spec.agents == 1; }
  bool is_making() const override {
    const std::lock_guard lock(mutex_);
    return pool_ && pool_->hub().stats().making > 0;
  }
  Result<std::unique_ptr<Env>> make() const override {
    TROUPE_ASSIGN(auto batch, make_batch(1));
    return as_env(std::move(batch));
  }
  Result<std::unique_ptr<BatchEnv>> make_batch(std::int64_t lanes) const override {
    TROUPE_CHECK(lanes >= 1 && lanes <= max_lanes_, "as many lanes as one answer may hold");
    TROUPE_ASSIGN(auto pool, workers());
    TROUPE_ASSIGN(auto lease, pool->hub().lease(lanes, kMakeAllowance + step_timeout_ / 2));
    return std::unique_ptr<BatchEnv>(
        std::make_unique<BridgeEnv>(std::move(pool), std::move(lease), setup_.spec, lanes,
                                    BridgeEnv::Options{step_timeout_, setup_.bridge.shared_memory}));
  }

 private:
  Result<std::shared_ptr<WorkerPool>> workers() const {
    const std::lock_guard lock(mutex_);
    if (!pool_) {
      TROUPE_ASSIGN(pool_, WorkerPool::start(setup_));
    }
    return pool_;
  }

  WorkerPool::Setup setup_;
  const std::chrono::milliseconds step_timeout_;
  std::int64_t max_lanes_ = 1;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<WorkerPool> pool_;  // guarded by mutex_; empty before the first environment
};

}  // namespace

Result<std::shared_ptr<const EnvFactory>> make_bridge_factory(std::string_view id, const EnvOptions& options) {
  EnvOptions ours = options;
  ours.options.clear();  // the environment's own arguments: Python knows them
  TROUPE_TRY(check_env_options(id, ours));
  WorkerPool::Setup setup{
      .spec = {},
      .options = nlohmann::json(options.options).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
      .command = {},
      .bridge = options.bridge,
      .max_message_bytes = 0};
  TROUPE_ASSIGN(setup.command, worker_command(options.bridge));
  if (options.known) {
    setup.spec = *options.known;
  } else {
    TROUPE_ASSIGN(setup.spec, describe_in_python(setup.command, std::string(id), setup.options));
  }
  if (options.max_steps > 0) setup.spec.max_steps = options.max_steps;
  return std::shared_ptr<const EnvFactory>(
      std::make_shared<BridgeFactory>(std::move(setup), to_milliseconds(options.step_timeout)));
}

void register_bridge_envs() {
  for (const EnvRow& family : {
           EnvRow{"gymnasium:*", "Python: an environment of Gymnasium, gymnasium:ID or gymnasium:MODULE:ID",
                  make_bridge_factory},
           EnvRow{"metaworld:*", "Python: a task of Meta-World, such as metaworld:reach-v3", make_bridge_factory},
           EnvRow{"pettingzoo:*",
                  "Python: a parallel environment of PettingZoo's form, such as pettingzoo:mpe2.simple_spread_v3",
                  make_bridge_factory},
           EnvRow{"python:*", "Python: a class of your own, python:MODULE:CLASS", make_bridge_factory},
           EnvRow{"robosuite:*", "Python: a task of robosuite, such as robosuite:Lift", make_bridge_factory},
       })
    register_env(family);
}

}  // namespace troupe::workers
