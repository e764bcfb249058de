#pragma once

#include <pthread.h>

#include <chrono>
#include <csignal>
#include <ctime>

#include "tests/support/visible.h"

namespace troupe::testing {

/// Blocks SIGTERM in this thread and in those that it starts later, so that the signal waits for wait_for(). Made
/// before any other thread runs; the signal stays blocked.
class BlockedSigterm {
 public:
  BlockedSigterm() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }
  /// Whether SIGTERM comes within `lifetime`.
  bool wait_for(std::chrono::seconds lifetime) const {
    const timespec patience{.tv_sec = lifetime.count(), .tv_nsec = 0};
    return sigtimedwait(&signals_, nullptr, &patience) == SIGTERM;
  }

 private:
  sigset_t signals_{};
};

}  // namespace troupe::testing
