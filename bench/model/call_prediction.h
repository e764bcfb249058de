#pragma once

#include <cstdint>
#include <vector>

#include "model/cores/kernel_work.h"
#include "workers/pipeline/device_timing.h"

namespace troupe::bench {

/// Rows of a prompt: a long instruction; Wan's negative prompt has 126.
inline constexpr std::int64_t kPromptRows = 100;

/// What these programs of a policy call are predicted to take, each launched as one graph or kernel by kernel.
inline double predicted_seconds(const std::vector<std::vector<KernelWork>>& programs, bool graphs,
                                const DeviceRates& rates) {
  double sum = 0;
  for (const auto& program : programs) sum += seconds_of_program(program, graphs, rates).sum();
  return sum;
}

}  // namespace troupe::bench
