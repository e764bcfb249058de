#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/model/dit_case.h"
#include "bench/support/result_file.h"

namespace troupe::bench {

/// The same work in two forms, and how far their results are apart.
struct Programs {
  std::string name;  ///< "training step"
  std::function<void()> ours, plain;
  double difference = 0;  ///< the largest relative L2 between their results
  double tolerance = 0;
};

/// Forward and backward of the loss: ours through a UnitTape that keeps its graphs, gradients written where the engine
/// would have them; plain as the reference computes it, blocks checkpointed. Compares loss and all gradients.
Programs training_programs(const DitCase& dit_case);

/// The denoising of one policy call, the transformer alone: four steps with guidance against a cache of three frames.
/// Compares the denoised video and actions.
Programs policy_call_programs(const DitCase& dit_case);

/// What was measured of one pair.
struct Timing {
  std::string name, dtype;
  double difference = 0;
  std::string products = {};
  Series ours_ms = {}, plain_ms = {}, products_ms = {};
  std::int64_t ours_bytes = 0, plain_bytes = 0, products_bytes = 0;
};

std::string to_table(const std::vector<Timing>& timings);

}  // namespace troupe::bench
