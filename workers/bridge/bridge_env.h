#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "env/batch_env.h"
#include "workers/bridge/lease_arrays.h"
#include "workers/bridge/worker_pool.h"

namespace troupe::workers {

/// Environments of one lease as lanes: each call is one question to their worker and its answer. A worker that does not
/// answer within half of `step_timeout` is given up; a reset may take kMakeAllowance more for each lane that it is the
/// first one of, or that failed.
class BridgeEnv final : public BatchEnv {
 public:
  struct Options {
    std::chrono::milliseconds step_timeout{};
    /// Arrays go through memory where the worker is on this machine (LeaseArrays).
    bool shares_memory = true;
  };
  BridgeEnv(std::shared_ptr<WorkerPool> pool, std::unique_ptr<comm::BridgeLease> lease, const EnvSpec& spec,
            std::int64_t lanes, Options options);

  const EnvSpec& spec() const noexcept override { return spec_; }
  std::int64_t lanes() const noexcept override { return lanes_; }
  Result<void> reset(std::span<const std::int64_t> lanes, std::span<const std::uint64_t> seeds,
                     std::span<const StepSlot> out) override;
  Result<void> step(std::span<const std::int64_t> lanes, std::span<const float> actions,
                    std::span<const StepSlot> out) override;
  Result<void> render(std::int64_t lane, const std::string& camera, RenderTarget out) override;
  Result<void> advise(std::int64_t lane, std::span<float> action) override;

 private:
  /// Writes the observations of an answer, whose agents are alive, and which lanes failed.
  Result<void> read_observations(const comm::WireMap& answer, std::span<const std::int64_t> lanes,
                                 std::span<const StepSlot> out);

  const std::shared_ptr<WorkerPool> pool_;
  const std::unique_ptr<comm::BridgeLease> lease_;
  const EnvSpec& spec_;
  const std::int64_t lanes_;
  const std::chrono::milliseconds patience_;
  LeaseArrays arrays_;
  std::vector<char> is_made_;  // by lane: it has been reset, and has not failed since
};

}  // namespace troupe::workers
