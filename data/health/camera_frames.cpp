#include "data/health/camera_frames.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "base/hash.h"

namespace troupe::data {

namespace {

constexpr std::uint8_t kBlackLuma = 24;

/// An episode's frames may take their time; a stall may not last for ever.
ClipDecoder::Deadline deadline_for(std::size_t frames) {
  return std::chrono::steady_clock::now() + std::chrono::seconds(60) + std::chrono::milliseconds(500) * frames;
}

/// Rows of a plane, gathered and hashed.
class PlaneHash {
 public:
  void add(const std::uint8_t* data, std::ptrdiff_t stride, std::int64_t height, std::int64_t width) {
    for (std::int64_t y = 0; y < height; ++y) bytes_.insert(bytes_.end(), data + y * stride, data + y * stride + width);
  }
  std::uint64_t finish() {
    const std::uint64_t hash = xxh3_64(std::as_bytes(std::span(bytes_)));
    bytes_.clear();
    return hash;
  }

 private:
  std::vector<std::uint8_t> bytes_;
};

bool is_dark(const std::uint8_t* data, std::ptrdiff_t stride, std::int64_t height, std::int64_t bytes) {
  for (std::int64_t y = 0; y < height; ++y) {
    const std::uint8_t* row = data + y * stride;
    if (std::any_of(row, row + bytes, [](std::uint8_t v) { return v > kBlackLuma; })) return false;
  }
  return true;
}

}  // namespace

Result<void> CameraFrames::read(const ImageSource& source, std::span<const std::int64_t> frames, const Sink& sink) {
  std::vector<std::int64_t> wanted(frames.begin(), frames.end());
  for (std::int64_t& f : wanted) f += source.first;
  if (source.is_video()) return decoder_.read(source.path, wanted, sink, deadline_for(wanted.size()));
  TROUPE_ASSIGN(const auto cells, read_image_cells(source.path, source.column, wanted));
  for (std::size_t i = 0; i < cells.size(); ++i) {
    TROUPE_TRY(
        stills_.decode(cells[i], fmt::format("{} column '{}' row {}", source.path, source.column, wanted[i]), still_));
    TROUPE_TRY(sink(i, still_.view()));
  }
  return {};
}

Result<void> CameraFrames::read_facts(const ImageSource& source, std::int64_t count, const FactSink& sink) {
  PlaneHash hash;
  if (source.is_video()) {
    std::vector<std::int64_t> wanted(static_cast<std::size_t>(count));
    std::iota(wanted.begin(), wanted.end(), source.first);
    const auto take = [&](std::size_t i, const Yuv420View& p) {
      hash.add(p.y, p.y_stride, p.height, p.width);
      hash.add(p.u, p.u_stride, (p.height + 1) / 2, (p.width + 1) / 2);
      hash.add(p.v, p.v_stride, (p.height + 1) / 2, (p.width + 1) / 2);
      return sink(i, {hash.finish(), is_dark(p.y, p.y_stride, p.height, p.width)});
    };
    return decoder_.read_yuv(source.path, wanted, take, deadline_for(wanted.size()));
  }
  return visit_image_cells(source.path, source.column, {source.first, count},
                           [&](std::int64_t row, std::span<const std::byte> bytes) -> Result<void> {
                             TROUPE_TRY(stills_.decode(
                                 bytes, fmt::format("{} column '{}' row {}", source.path, source.column, row), still_));
                             const Rgb8View p = still_.view();
                             hash.add(p.data, p.stride, p.height, 3 * p.width);
                             return sink(static_cast<std::size_t>(row - source.first),
                                         {hash.finish(), is_dark(p.data, p.stride, p.height, 3 * p.width)});
                           });
}

}  // namespace troupe::data
