#include "workers/inference/evaluate/window_clip.h"

#include <fmt/format.h>

#include <chrono>
#include <cstring>

#include "data/image/yuv_to_rgb.h"
#include "data/sample/picture_reader.h"

namespace troupe::workers {

Result<WindowClip> WindowClip::read(const Dataset& dataset, std::size_t place, std::span<const std::int64_t> rows,
                                    const ReadClip& read_clip, double deadline_s) {
  WindowClip clip;
  const auto deadline =
      std::chrono::steady_clock::now() +
      std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(deadline_s));
  ClipDecoder::Options options;
  options.find_table = [&dataset](const std::string& path, const FileIdentity& identity) {
    return dataset.packet_table(path, identity);
  };
  PictureReader reader(std::move(options), read_clip);
  std::vector<std::uint8_t> converted;
  for (std::size_t v = 0; v < dataset.columns().views.size(); ++v) {
    TROUPE_ASSIGN(const PictureSource source, dataset.pictures(place, v));
    View& view = clip.views_[dataset.columns().views[v].name];
    const auto sink = [&](std::size_t i, const Rgb8View& picture) -> Result<void> {
      if (view.pixels.empty()) {
        view.height = picture.height;
        view.width = picture.width;
        view.pixels.resize(rows.size() * static_cast<std::size_t>(3 * picture.height * picture.width));
      }
      if (picture.height != view.height || picture.width != view.width) {
        return Error{Errc::data_loss, fmt::format("{}: frame {} is {}x{}, others are {}x{}", source.path, rows[i],
                                                  picture.height, picture.width, view.height, view.width)};
      }
      const auto row_bytes = static_cast<std::size_t>(3 * view.width);
      std::byte* out = view.pixels.data() + i * static_cast<std::size_t>(view.height) * row_bytes;
      for (std::int64_t y = 0; y < view.height; ++y, out += row_bytes) std::memcpy(out, picture.row(y), row_bytes);
      return {};
    };
    const auto convert = [&](std::size_t i, const Yuv420View& picture) {
      const auto stride = static_cast<std::ptrdiff_t>(3 * picture.width);
      converted.resize(static_cast<std::size_t>(stride * picture.height));
      yuv420_to_rgb(picture, converted.data(), stride);
      return sink(i, Rgb8View{converted.data(), picture.height, picture.width, stride});
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
