#pragma once

#include <pthread.h>

#include <csignal>

#include "base/namespaces.h"

namespace troupe::base {

/// Blocks every signal in the calling thread while it lives, so that threads started meanwhile never receive one:
/// signals go to the threads that expect them. One thread.
class BlockedSignals {
 public:
  /// sigfillset leaves out nothing; SIGKILL and SIGSTOP cannot be blocked. The mask before comes back on destruction.
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace troupe::base
