#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "comm/bridge/bridge_hub.h"
#include "configs/bridge_config.h"
#include "env/env_spec.h"
#include "workers/bridge/worker_command.h"
#include "workers/bridge/worker_process.h"

namespace troupe::workers {

/// The workers of one kind of environment, and the hub to which they come: those that this process starts, keeps and
/// ends, and those that the user starts. One that ends, or is given up, is started again, at once where it had answered
/// a question, else at longer and longer intervals of up to 30 seconds. Methods may be called from any thread.
class WorkerPool {
 public:
  struct Setup {
    EnvSpec spec;
    /// Keyword arguments as JSON.
    std::string options;
    WorkerCommand command;
    configs::BridgeConfig bridge;
    /// Of one answer.
    std::size_t max_message_bytes = 0;
    /// A worker that has not come after this long is ended and started again.
    std::chrono::milliseconds start_patience = kStartPatience;
  };
  /// Starts the hub and the workers. Errors: those of BridgeHub::start; invalid_argument (no workers and no bind),
  /// resource_exhausted.
  static Result<std::shared_ptr<WorkerPool>> start(Setup setup);
  /// Ends the workers: those of its own are killed at the latest half a second after they were asked to.
  virtual ~WorkerPool() = default;

  virtual comm::BridgeHub& hub() = 0;
};

}  // namespace troupe::workers
