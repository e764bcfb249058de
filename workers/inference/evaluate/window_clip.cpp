#include "workers/inference/evaluate/window_clip.h"

#include <fmt/format.h>

#include <chrono>
#include <cstring>

#include "image/yuv_to_rgb.h"

namespace troupe::workers {

Result<WindowClip> WindowClip::read(const Dataset& dataset, std::size_t place, std::span<const std::int64_t> rows,
                                    const ReadClip& read_clip, Seconds allowed) {
  WindowClip clip;
  const auto deadline = std::chrono::steady_clock::now() + to_milliseconds(allowed);
  ClipDecoder::Options options;
  options.find_table = [&dataset](const std::string& path, const FileIdentity& identity) {
    return dataset.packet_table(path, identity);
  };
  ImageReader reader(std::move(options), read_clip);
  std::vector<std::uint8_t> converted;
  for (std::size_t v = 0; v < dataset.columns().views.size(); ++v) {
    TROUPE_ASSIGN(const ImageSource source, dataset.images(place, v));
    View& view = clip.views_[dataset.columns().views[v].name];
    const auto sink = [&](std::size_t i, const Rgb8View& image) -> Result<void> {
      if (view.pixels.empty()) {
        view.height = image.height;
        view.width = image.width;
        view.pixels.resize(rows.size() * static_cast<std::size_t>(3 * image.height * image.width));
      }
      if (image.height != view.height || image.width != view.width) {
        return Error{Errc::data_loss, fmt::format("{}: frame {} is {}x{}, others are {}x{}", source.path, rows[i],
                                                  image.height, image.width, view.height, view.width)};
      }
      const auto row_bytes = static_cast<std::size_t>(3 * view.width);
      std::byte* out = view.pixels.data() + i * static_cast<std::size_t>(view.height) * row_bytes;
      for (std::int64_t y = 0; y < view.height; ++y, out += row_bytes) std::memcpy(out, image.row(y), row_bytes);
      return {};
    };
    const auto convert = [&](std::size_t i, const Yuv420View& image) {
      const auto stride = static_cast<std::ptrdiff_t>(3 * image.width);
      converted.resize(static_cast<std::size_t>(stride * image.height));
      yuv420_to_rgb(image, converted.data(), stride);
      return sink(i, Rgb8View{converted.data(), image.height, image.width, stride});
    };
    TROUPE_TRY(reader.read(source, rows, {}, {.yuv = convert, .rgb = sink}, deadline));
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

}  // namespace troupe::workers
