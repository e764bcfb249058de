#pragma once

#include <pthread.h>

#include <csignal>

namespace troupe {

/// Blocks every signal in the calling thread while it lives, so that threads started meanwhile never receive one:
/// signals go to the threads that expect them. One thread.
class BlockedSignals {
 public:
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

}  // namespace troupe
