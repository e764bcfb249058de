#pragma once

#include <string>
#include <vector>

#include "bench/model/engine_measure.h"

namespace troupe::bench {

/// Ours beside the products of its step and beside plain, a line for each way of keeping.
std::string times_table(const std::vector<EngineTimes>& all);

/// A line "NAME MS LOSS" for each of ours: median of the rounds, and the loss of the first step from the initial
/// values; what scripts read.
std::string plain_lines(const EngineTimes& times);

/// The whole result file. `load`: the machine's load averages before the first case.
std::string to_markdown(const std::vector<EngineTimes>& all, const std::string& command, const std::string& load);

}  // namespace troupe::bench
