#pragma once

#include "comm/collective/collective.h"

namespace troupe::comm {

/// A rank's place among those of its colour.
struct ColourGroup {
  int rank = 0, world = 1;
};

/// Of Collective::split: one all-gather. Errors: those of it.
Result<ColourGroup> find_colour_group(Collective& group, int colour);

}  // namespace troupe::comm
