#pragma once

#include <vector>

#include "workers/rollout/simulators.h"

namespace troupe::workers {

/// Simulators in processes or threads of their own (SimulatorRole), which dial a channel: requests travel with its
/// credits.
class ChannelSimulators final : public Simulators {
 public:
  /// Only this object may grant the slots of `channel`, which outlives it.
  explicit ChannelSimulators(ChannelConsumer& channel) : channel_(channel) {}

  std::int64_t num_slots() const override { return channel_.num_slots(); }
  std::int64_t free_slots() const override { return channel_.free_slots(); }
  Result<std::uint32_t> ask(const std::string& simulator, const Credit& credit, const BlockRequest& request) override;
  std::byte* slot(std::uint32_t index) override;
  void release(std::uint32_t slot) override { channel_.release(slot); }

 private:
  ChannelConsumer& channel_;
  std::vector<std::byte> request_;
};

}  // namespace troupe::workers
