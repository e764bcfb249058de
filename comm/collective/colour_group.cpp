#include "comm/collective/colour_group.h"

#include <algorithm>
#include <vector>

namespace troupe::comm {

Result<ColourGroup> find_colour_group(Collective& group, int colour) {
  std::vector<int> colours(static_cast<std::size_t>(group.world()));
  TROUPE_TRY(group.all_gather(std::as_writable_bytes(std::span(colours)), std::as_bytes(std::span(&colour, 1))));
  const auto mine = colours.begin() + group.rank();
  return ColourGroup{.rank = static_cast<int>(std::count(colours.begin(), mine, colour)),
                     .world = static_cast<int>(std::count(colours.begin(), colours.end(), colour))};
}

}  // namespace troupe::comm
