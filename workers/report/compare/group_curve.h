#pragma once

#include <string>
#include <vector>

#include "workers/report/compare/run_group.h"

namespace troupe::workers {

/// A metric of a group: one curve for all of its seeds.
struct GroupCurve {
  /// As many of each; `middle` is the interquartile mean over seeds, `low` and `high` its 95 % bootstrap interval. With
  /// one seed `middle` is its curve, and the others are empty.
  std::vector<double> x{}, middle{}, low{}, high{};
};

/// Seeds that were recorded at the same, at most 200, steps are taken at those. Others, as free-running actors make
/// them, are taken at the ends of 100 equal stretches of x: the mean of a seed's values inside a stretch, between its
/// neighbours by distance where there are none. A seed counts from its first to its last value. Seeds without the
/// metric, and values that are not finite, are left out.
GroupCurve group_curve(const RunGroup& group, const std::string& metric, bool over_env_steps);

}  // namespace troupe::workers
