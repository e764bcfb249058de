#pragma once

#include "workers/controller/background.h"

namespace troupe::testing {

/// Does everything at once.
class InlineBackground final : public Background {
 public:
  void run(Work work, Then then) override {
    const Result<void> result = work();
    if (then) then(result);
  }
  void collect() override {}
  std::size_t waiting() const override { return 0; }
  bool wait_idle(std::chrono::milliseconds) override { return true; }
};

}  // namespace troupe::testing
