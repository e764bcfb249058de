#pragma once

#include <cstddef>
#include <vector>

#include "model/program/graph.h"

namespace troupe::model {

/// Intermediate values that the operations [forward, end) of a graph read and the first `forward` ones write; by id.
std::vector<bool> values_for_backward(const Graph& graph, std::size_t forward);

/// The operations among the first `forward` ones that must run again, in order, before the backward: those that write a
/// value in `wanted`, and what these read in turn. Pure.
std::vector<std::size_t> replayed_operations(const Graph& graph, std::size_t forward, const std::vector<bool>& wanted);

}  // namespace troupe::model
