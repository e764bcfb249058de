#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/seconds.h"
#include "comm/serve/ndarray.h"
#include "data/dataset.h"
#include "data/sample/image_reader.h"

namespace troupe::workers {

/// The recorded frames of a window, of every view of the dataset, as a robot's cameras would send them: at the
/// recording's size, before any crop. Immutable.
class WindowClip {
 public:
  /// Decodes frames `rows` (ascending) of episodes()[place]. An empty read_clip: a decoder of its own. Takes at
  /// most `allowed`. Errors: those of the decoder; data_loss when frames of one view differ in size.
  static Result<WindowClip> read(const Dataset& dataset, std::size_t place, std::span<const std::int64_t> rows,
                                 const ReadClip& read_clip, Seconds allowed);

  /// Frames [first, first + count) of a view as u8 [H, W, 3] (count 1) or [count, H, W, 3]. Requires that they exist.
  NdArray frames(const std::string& view, std::int64_t first, std::int64_t count) const;

 private:
  struct View {
    std::int64_t height = 0, width = 0;
    std::vector<std::byte> pixels;  // (rows, height, width, 3)
  };
  std::map<std::string, View> views_;
};

}  // namespace troupe::workers
