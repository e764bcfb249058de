#pragma once

#include "tests/app/rl_fixture.h"

namespace troupe::app {

/// Jobs that run to their end, and what they learnt.
class RlLearningTest : public RlRunTest {
 protected:
  /// The last value of a metric after `troupe run WORDS`.
  double learnt(const std::string& root, const Words& words, const std::string& metric) const {
    const ProgramEnd end = run_program(Words{"run"} + words + Words{"job.run_root=" + (dir_ / root)},
                                       {.cwd = dir_.path(), .env = {}, .deadline = 500s});
    EXPECT_EQ(end.exit_code, 0) << end.text();
    const auto values = curve(root, metric);
    EXPECT_FALSE(values.empty()) << end.text();
    return values.empty() ? 0 : values.rbegin()->second;
  }
};

}  // namespace troupe::app
