#pragma once

#include <span>
#include <string>

#include "model/step/op.h"

namespace troupe::model {

/// "backward blocks.3 m0 p1 g1": what an operation does, to which unit, of which micro-batch, with which parameter and
/// gradient slots.
std::string title(const Op& operation, const ArenaPlan& plan);

/// One line an operation: its number, stream and title, and the numbers of the operations of other streams that it
/// waits for.
std::string to_string(std::span<const Op> operations, const ArenaPlan& plan);

}  // namespace troupe::model
