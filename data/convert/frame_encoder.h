#pragma once

// Internal to data/convert: frames that are coded anew because their packets cannot be copied or the user asks for it.
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "data/convert/convert_dataset.h"
#include "data/convert/rational.h"
#include "data/video/ffmpeg.h"

namespace troupe::data {

/// Codes frames of one size and format into an MP4 file, frame i at i / fps. One thread, one reference, no
/// B-frames: the same frames give the same bytes. Not thread-safe.
class FrameEncoder {
 public:
  /// Opens the encoder for a trial with 64x64 frames, so that bad options fail before anything is written. Errors:
  /// invalid_argument with the options that it does not take; SVT-AV1 is always refused (its version 1.4 hangs).
  static Result<void> check(const ConvertEncoding& encoding);

  /// Creates the MP4 file at `path`. `like` gives size, pixel format and colours of the frames to come; where they
  /// differ from `encoding`, frames are scaled and converted. Errors: invalid_argument, failed_precondition, internal.
  static Result<std::unique_ptr<FrameEncoder>> open(const std::string& path, const ConvertEncoding& encoding,
                                                    const AVFrame& like, FrameRate rate);
  ~FrameEncoder();
  FrameEncoder(const FrameEncoder&) = delete;
  FrameEncoder& operator=(const FrameEncoder&) = delete;

  /// Appends a frame; `key`: decoding can start at it. Errors: data_loss (another size or format than `like`),
  /// resource_exhausted (full disk), internal. Fault point convert.packet (subject: the path), per coded frame.
  Result<void> write(const AVFrame& frame, bool key);
  /// What follows does not refer to what came before: the next frame is a key frame, whatever the codec. `like`: as
  /// for open().
  Result<void> next_episode(const AVFrame& like);
  /// Flushes the encoder, writes the index and closes the file; returns the frames written. Without this call the file
  /// cannot be read.
  Result<std::int64_t> finish();

 private:
  struct State;
  explicit FrameEncoder(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace troupe::data
