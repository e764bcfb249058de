#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "tests/device/standin/standin.h"

namespace troupe::kernels::cuda {

/// Plants one fault after the other in a kernel (tests/device/standin/mutant.h) and runs `results`, which launches it
/// and returns the bytes it wrote. A fault is found if the stand-in reports it or the bytes differ from those without
/// one. A missing barrier must be found; of bounds that are off by one the rest is counted: they changed no bit and
/// touched nothing that is not theirs.
inline void expect_faults_found(const std::string& kernel, const std::function<std::vector<std::byte>()>& results) {
  device::standin::reset({.seed = 1});
  const auto sound = results();
  ASSERT_TRUE(device::standin::report().findings.empty());
  std::size_t reported = 0, wrong = 0, without_effect = 0;
  for (std::size_t place = 0;; ++place) {
    bool is_reported = false, is_wrong = false;
    std::string mutant;
    // a barrier may be missed in some orders alone
    for (std::uint64_t seed = 1; seed <= 4 && !is_reported && !is_wrong; ++seed) {
      device::standin::reset({.seed = seed, .mutant = device::standin::MutantChoice{kernel, place}});
      is_wrong = results() != sound;
      const auto report = device::standin::report();
      is_reported = !report.findings.empty();
      mutant = report.mutant;
      if (mutant.rfind("setp", 0) == 0) break;
    }
    if (mutant.empty()) break;
    reported += is_reported ? 1 : 0;
    wrong += !is_reported && is_wrong ? 1 : 0;
    if (is_reported || is_wrong) continue;
    ++without_effect;
    EXPECT_EQ(mutant.rfind("setp", 0), 0U) << kernel << ", place " << place << ": no test finds " << mutant;
  }
  device::standin::reset({});
  EXPECT_GT(reported + wrong, 0U) << kernel << " has no place for a fault";
  std::cout << kernel << ": " << reported << " faults reported, " << wrong << " seen in the results, " << without_effect
            << " bounds without effect\n";
}

}  // namespace troupe::kernels::cuda
