#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>

#include "model/shard/network.h"

namespace troupe::model {

/// How channel norms and the SiLU behind them round when the weights are bf16 (docs/vae.md#precision).
enum class NormRounding : std::uint8_t {
  /// after each operation: the reference outside autocast, which encodes and decodes clips so
  every_step,
  /// f32 until the next convolution: the reference under autocast, which encodes first frames so
  at_the_end,
};

/// What the layers remember between the chunks of one stream: copies of the last inputs of every convolution over time,
/// by the convolution's name. A convolution that has no entry has seen nothing: its history is zeros. Of a halving
/// convolution the last one frame, of every other the last two: [B, 1 or 2, H, W, C]. A value: a copy is an independent
/// stream's state but for the frames, which are never written again.
struct VaeCache {
  /// true once frame 0 has passed
  bool started = false;
  std::map<std::string, at::Tensor> past;
};

/// One pass of frames through the layers.
///
/// A still sequence ends in frames that are all equal: only the first of them is stored, and every layer grows the
/// stored part by as many frames as it needs until its own output repeats. `still_frames` is the number of frames that
/// such a sequence stands for at the present rate; layers that change the rate change it. 0: all frames are stored.
/// A still sequence has no cache.
struct VaePass {
  const ParamView& params;
  /// of a stream; null when the pass is the whole sequence
  VaeCache* cache = nullptr;
  std::int64_t still_frames = 0;
  NormRounding rounding = NormRounding::every_step;

  /// Whether the first frame of this pass is frame 0.
  bool starts() const { return cache == nullptr || !cache->started; }
  /// The frames kept under `name`, or an undefined tensor.
  at::Tensor past(const std::string& name) const;
  void keep(const std::string& name, const at::Tensor& frames) const;
};

}  // namespace troupe::model
