#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace troupe::image {

/// Where one view lies on the canvas: its top left pixel, and how wide it is drawn.
struct CanvasTile {
  /// Top left pixel of the view on the canvas.
  std::int64_t row = 0, column = 0;
  /// Each column of the view is written this many times.
  std::int64_t repeat = 1;
};

/// How the views of a sample share one image. h, w: one view after the resize, pixels. The layouts are those of GEAR's
/// transforms, whose prompts name the corners (data/language/prompt_templates.h).
///     single      1 view,   h x w
///     horizontal  2 views,  h x 2w: view 0 left, view 1 right
///     droid       3 views, 2h x 2w: view 2 on top, its columns twice; view 0 bottom left, view 1 bottom right
///     grid2x2     2 or 3,  2h x 2w: view 0 top left, view 1 bottom left, view 2 top right, the rest black
struct CanvasLayout {
  /// Size of the whole canvas, pixels.
  std::int64_t height = 0, width = 0;
  /// One per view, in the order of data.embodiment.views.
  std::vector<CanvasTile> tiles{};
  /// false: part of the canvas belongs to no view and is black.
  bool covered = true;

  /// `layout` is data.embodiment.layout. Pure.
  /// Errors: invalid_argument for an unknown layout or a number of views that it does not take.
  static Result<CanvasLayout> make(const std::string& layout, std::int64_t num_views, std::int64_t view_height,
                                   std::int64_t view_width);
};

}  // namespace troupe::image
