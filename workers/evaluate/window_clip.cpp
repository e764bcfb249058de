#include "workers/evaluate/window_clip.h"

#include <fmt/format.h>

#include <chrono>
#include <cstring>

#include "workers/data/video/clip_decoder.h"

namespace troupe {

Result<WindowClip> WindowClip::read(const Dataset& dataset, std::size_t place, std::span<const std::int64_t> rows,
                                    const ReadClip& read_clip, double deadline_s) {
  WindowClip clip;
  const auto deadline =
      std::chrono::steady_clock::now() +
      std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(deadline_s));
  ClipDecoder decoder;
  for (std::size_t v = 0; v < dataset.columns().views.size(); ++v) {
    TROUPE_ASSIGN(const std::string path, dataset.video_path(place, v));
    View& view = clip.views_[dataset.columns().views[v].name];
    const auto sink = [&](std::size_t i, const Rgb8View& picture) -> Result<void> {
      if (view.pixels.empty()) {
        view.height = picture.height;
        view.width = picture.width;
        view.pixels.resize(rows.size() * static_cast<std::size_t>(3 * picture.height * picture.width));
      }
      if (picture.height != view.height || picture.width != view.width) {
        return Error{Errc::data_loss, fmt::format("{}: frame {} is {}x{}, others are {}x{}", path, rows[i],
                                                  picture.height, picture.width, view.height, view.width)};
      }
      const auto row_bytes = static_cast<std::size_t>(3 * view.width);
      std::byte* out = view.pixels.data() + i * static_cast<std::size_t>(view.height) * row_bytes;
      for (std::int64_t y = 0; y < view.height; ++y, out += row_bytes) std::memcpy(out, picture.row(y), row_bytes);
      return {};
    };
    TROUPE_TRY(read_clip ? read_clip(path, rows, sink, deadline) : decoder.read(path, rows, sink, deadline));
  }
  return clip;
}

NdArray WindowClip::frames(const std::string& view, std::int64_t first, std::int64_t count) const {
  const View& v = views_.at(view);
  const auto bytes = static_cast<std::size_t>(3 * v.height * v.width);
  const auto begin = v.pixels.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(first) * bytes);
  NdArray out{.dtype = "|u1", .shape = {v.height, v.width, 3}, .data = {}};
  if (count > 1) out.shape.insert(out.shape.begin(), count);
  out.data.assign(begin, begin + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(count) * bytes));
  return out;
}

}  // namespace troupe
