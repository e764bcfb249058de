#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/random.h"
#include "bench/faults/trial.h"

namespace troupe::bench {

/// One way to hurt a job.
struct Fault {
  std::string name;
  double bar_s;  ///< the longest recovery that counts
  bool sft = true, rl = true;
  /// Hurts the job and waits until it has recovered; the seconds that took, from the moment that the fault's bar names.
  /// Throws NotRecovered.
  std::function<double(Trial&, CounterRng&)> strike;
  /// How the job must have been started; such a fault has a job to itself.
  TrialSetup::Output output = TrialSetup::Output::file;
  std::string point{};
  bool is_long = false;  ///< lasts or waits for 10 s and more
  bool is_special() const { return output != TrialSetup::Output::file || !point.empty(); }
};

/// Every fault of the campaign, those of TROUPE_FAULT's points among them. `page` is docs/fault-points.md; throws
/// std::runtime_error where it lists a point that the campaign neither knows nor leaves out.
std::vector<Fault> all_faults(const std::string& page);

}  // namespace troupe::bench
