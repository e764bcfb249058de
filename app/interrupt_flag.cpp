#include "app/interrupt_flag.h"

#include <signal.h>

namespace troupe::app {

namespace {
std::atomic<bool> interrupted{false};  // lock-free: a signal handler sets it
}

const std::atomic<bool>& interrupt_flag() {
  static const bool is_watched = [] {
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = true; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigaction(SIGINT, &action, nullptr);
    ::sigaction(SIGTERM, &action, nullptr);
    return true;
  }();
  (void)is_watched;
  return interrupted;
}

}  // namespace troupe::app
