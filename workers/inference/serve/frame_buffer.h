#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/result.h"
#include "comm/serve/ndarray.h"

namespace troupe::workers {

/// The newest frames of one camera of one robot, as DreamZero's own server keeps them (docs/serve.md#sessions).
/// One thread at a time.
class FrameBuffer {
 public:
  /// Frames that are kept: as many as the released policies take in a later call.
  static constexpr std::size_t kDepth = 4;

  /// Whether `images`, u8 [H, W, 3] or [T, H, W, 3], could be pushed. Errors: invalid_argument (dtype, shape, or
  /// another size than the frames that are held).
  Result<void> check(const NdArray& images) const;
  /// Adds the frames, newest last; the oldest beyond kDepth go. Only what `check` accepts.
  void push(const NdArray& images);
  /// The newest `count` frames as u8 [count, H, W, 3]; the oldest held is repeated in front where fewer are held.
  NdArray newest(std::size_t count) const;

 private:
  std::int64_t height_ = 0, width_ = 0;  // of what is held
  std::deque<std::vector<std::byte>> frames_;
};

/// How many frames per view to hand to a policy that takes `frames_per_call`: 1 on the first call of a session, else 4;
/// where the policy does not take that, the largest count below, or the smallest it takes.
std::size_t frames_for_call(std::span<const std::int64_t> frames_per_call, bool is_first_call);

}  // namespace troupe::workers
