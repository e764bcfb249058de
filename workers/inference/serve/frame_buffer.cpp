#include "workers/inference/serve/frame_buffer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace troupe::workers {

namespace {

constexpr std::int64_t kMaxSide = 8192;

}  // namespace

Result<void> FrameBuffer::check(const NdArray& images) const {
  const auto& shape = images.shape;
  const auto refuse = [&](std::string_view want) {
    return Error{Errc::invalid_argument,
                 fmt::format("images {} [{}]; want {}", images.dtype, fmt::join(shape, ", "), want)};
  };
  if (images.dtype != "|u1") return refuse("dtype |u1");
  if ((shape.size() != 3 && shape.size() != 4) || shape.back() != 3) return refuse("[H, W, 3] or [T, H, W, 3]");
  const std::int64_t height = shape[shape.size() - 3], width = shape[shape.size() - 2];
  if (height < 1 || width < 1 || height > kMaxSide || width > kMaxSide)
    return refuse(fmt::format("sides of 1 to {}", kMaxSide));
  if (shape.size() == 4 && shape[0] < 1) return refuse("at least one image");
  if (static_cast<std::int64_t>(images.data.size()) != images.numel()) return refuse("as many bytes as the shape says");
  if (!frames_.empty() && (height != height_ || width != width_))
    return refuse(
        fmt::format("{} x {} as in the session's calls before (reset it to change the camera)", height_, width_));
  return {};
}

void FrameBuffer::push(const NdArray& images) {
  const auto& shape = images.shape;
  height_ = shape[shape.size() - 3];
  width_ = shape[shape.size() - 2];
  const auto size = static_cast<std::size_t>(height_ * width_ * 3);
  const std::size_t count = images.data.size() / size;
  for (std::size_t i = count - std::min(count, kDepth); i < count; ++i) {
    const auto* begin = images.data.data() + i * size;
    frames_.emplace_back(begin, begin + size);
    if (frames_.size() > kDepth) frames_.pop_front();
  }
}

NdArray FrameBuffer::newest(std::size_t count) const {
  NdArray out{"|u1", {static_cast<std::int64_t>(count), height_, width_, 3}, {}};
  if (frames_.empty()) return {"|u1", {0, 0, 0, 3}, {}};
  out.data.reserve(count * frames_.front().size());
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t from_end = count - i;
    const auto& frame = from_end > frames_.size() ? frames_.front() : frames_[frames_.size() - from_end];
    out.data.insert(out.data.end(), frame.begin(), frame.end());
  }
  return out;
}

std::size_t frames_for_call(std::span<const std::int64_t> frames_per_call, bool is_first_call) {
  const std::int64_t want = is_first_call ? 1 : static_cast<std::int64_t>(FrameBuffer::kDepth);
  std::int64_t best = 0, least = 0;
  for (const std::int64_t count : frames_per_call) {
    if (count <= want) best = std::max(best, count);
    least = least == 0 ? count : std::min(least, count);
  }
  return static_cast<std::size_t>(best > 0 ? best : least > 0 ? least : want);
}

}  // namespace troupe::workers
