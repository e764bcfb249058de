#pragma once

#include <string>
#include <vector>

#include "bench/support/result_file.h"
#include "configs/loader.h"

namespace troupe::bench {

constexpr int kComparedSteps = 5;  ///< before timing

/// One comparison: the sharded learner against its peer, rounds in the order they ran.
struct Comparison {
  std::string name;                       ///< "2 ranks of 1 thread, plain with 2 threads"
  Series sharded_ms = {}, plain_ms = {};  ///< per sample
  double largest_loss_gap = 0;            ///< relative, over the compared steps
};

std::string to_table(const std::vector<Comparison>& comparisons);

/// The whole result file: command, commit, machine, versions, table, configuration.
std::string to_markdown(const std::vector<Comparison>& comparisons, const std::string& command,
                        const LoadedConfig& config);

}  // namespace troupe::bench
