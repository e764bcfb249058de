#pragma once

#include <ATen/core/ATen_fwd.h>
#include <c10/core/ScalarType.h>

#include <string>
#include <vector>

#include "bench/model/dit_case.h"

namespace troupe::bench {

/// One learner that is measured: a model and who computes it.
struct EngineSetup {
  std::string name = {};  ///< "150M-fp32-micro1-1x2": parameters, dtype, micro-batch of a rank, ranks x threads of each
  DitSize size;           ///< its samples are those of one rank
  at::ScalarType dtype = at::kFloat;
  int ranks = 1, threads = 2;
  int steps = 1;                  ///< of a timed phase
  bool compares_steps = true;     ///< its first steps are compared before anything is timed
  bool compares_threads = false;  ///< one rank is timed with one thread too
  bool one_at_a_time = false;     ///< each round makes its trainers, since all of them do not fit in memory

  int cores() const { return ranks * threads; }
  std::int64_t samples() const { return ranks * size.samples; }
};

/// All of them, 25 M parameters first. `is_short`: one small model instead of the two.
std::vector<EngineSetup> engine_setups(bool is_short);

}  // namespace troupe::bench
