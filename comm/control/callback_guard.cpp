#include "comm/control/callback_guard.h"

#include "base/check.h"
#include "base/log.h"

namespace troupe::comm {

void CallbackGuard::caught(std::string_view what, std::string_view why) {
  constexpr auto kWindow = std::chrono::seconds(10);
  constexpr std::size_t kLimit = 3;
  count_.fetch_add(1, std::memory_order_relaxed);
  const auto now = std::chrono::steady_clock::now();
  recent_.push_back(now);
  while (now - recent_.front() > kWindow) recent_.pop_front();
  log::error("io loop: {} threw: {} ({} within 10 s)", what, why, recent_.size());
  TROUPE_CHECK(recent_.size() < kLimit, "callbacks of the io loop do not throw again and again");
}

}  // namespace troupe::comm
