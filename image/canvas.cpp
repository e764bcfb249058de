#include "image/canvas.h"

#include <fmt/format.h>

namespace troupe::image {

Result<CanvasLayout> CanvasLayout::make(const std::string& layout, std::int64_t num_views, std::int64_t view_height,
                                        std::int64_t view_width) {
  const std::int64_t h = view_height, w = view_width;
  const auto refuse = [&](const char* wanted) {
    return invalid_argument(
        fmt::format("data.embodiment.layout {} takes {}; data.embodiment.views names {}", layout, wanted, num_views));
  };
  if (layout == "single") {
    if (num_views != 1) return refuse("one view");
    return CanvasLayout{h, w, {{}}};
  }
  if (layout == "horizontal") {
    if (num_views != 2) return refuse("two views");
    return CanvasLayout{h, 2 * w, {{}, {.column = w}}};
  }
  if (layout == "droid") {
    if (num_views != 3) return refuse("three views");
    return CanvasLayout{2 * h, 2 * w, {{.row = h}, {.row = h, .column = w}, {.repeat = 2}}};
  }
  if (layout == "grid2x2") {
    if (num_views != 2 && num_views != 3) return refuse("two or three views");
    CanvasLayout grid{2 * h, 2 * w, {{}, {.row = h}}, false};
    if (num_views == 3) grid.tiles.push_back({.column = w});
    return grid;
  }
  return invalid_argument(
      fmt::format("data.embodiment.layout is {}; wanted single, horizontal, droid or grid2x2", layout));
}

}  // namespace troupe::image
