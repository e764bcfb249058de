#pragma once

// Internal to data/convert: pictures coded anew.
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "data/convert/convert_dataset.h"
#include "data/convert/rational.h"
#include "data/video/ffmpeg.h"

namespace troupe {

/// Codes pictures of one size and format into an MP4 file, picture i at i / fps. One thread, one reference, no
/// B-frames: the same pictures give the same bytes. Not thread-safe.
class FrameEncoder {
 public:
  /// Opens the encoder for a trial (but SVT-AV1). Errors: invalid_argument, with the options that it does not take.
  static Result<void> check(const ConvertEncoding& encoding);

  /// `like` gives size, format and colours of what comes. Errors: invalid_argument, failed_precondition, internal.
  static Result<std::unique_ptr<FrameEncoder>> open(const std::string& path, const ConvertEncoding& encoding,
                                                    const AVFrame& like, FrameRate rate);
  ~FrameEncoder();
  FrameEncoder(const FrameEncoder&) = delete;
  FrameEncoder& operator=(const FrameEncoder&) = delete;

  /// Appends a picture; `key`: decoding can start at it.
  Result<void> write(const AVFrame& picture, bool key);
  /// What follows does not refer to what came before: the next picture is a key picture, whatever the codec. `like`: as
  /// for open().
  Result<void> next_episode(const AVFrame& like);
  Result<std::int64_t> finish();

 private:
  struct State;
  explicit FrameEncoder(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace troupe
