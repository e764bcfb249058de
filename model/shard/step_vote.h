#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/namespaces.h"

namespace troupe::model {

/// What all ranks agree on after the last micro-batch of a step.
struct StepVote {
  /// of the global mean gradient, before clipping; rounded to f32
  double grad_norm = 0;
  /// no rank saw a loss or gradient that is not finite
  bool finite = true;
  /// the caller's numbers, summed over ranks (f64)
  std::vector<double> sums;
  /// the caller's numbers, maximum over ranks (f64)
  std::vector<double> maxima;
  /// the same as grad_norm of each unit group alone
  std::map<std::string, double> group_norms = {};
  /// not rounded, in order of UnitGroups::names(): what commit clips by
  std::vector<double> group_squares = {};
  /// that this rank took to agree, with the wait for slower ranks
  double seconds = 0;
};

/// What an optimizer counted on this rank's shards.
struct OptimizerCounts {
  /// elements that the last update moved by the whole learning rate (Sophia)
  double whole_steps = 0;
  /// sum of the curvature after its last estimate
  double curvature = 0;
};

}  // namespace troupe::model
