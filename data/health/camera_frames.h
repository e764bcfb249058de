#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/result.h"
#include "data/lerobot/lerobot_dataset.h"
#include "data/lerobot/parquet_table.h"
#include "data/video/clip_decoder.h"
#include "data/video/still_image.h"
#include "image/video_frame.h"

namespace troupe::data {

/// Reads frames of a camera wherever they are: a video or an image column. One thread, one reader.
class CameraFrames {
 public:
  /// Gets the frame at frames[i] of the source as RGB; the view is valid during the call.
  using Sink = std::function<Result<void>(std::size_t i, const Rgb8View& frame)>;
  /// The same as hashable facts, without a conversion to RGB where the file holds YUV.
  struct Fact {
    /// XXH3-64 over the visible samples of all planes: equal frames have equal hashes.
    std::uint64_t hash = 0;
    /// No luma above 24 of 255 (limited range: 16 is black).
    bool black = false;
  };
  using FactSink = std::function<Result<void>(std::size_t i, const Fact& fact)>;

  /// Keeps 4 video files open and no decoded frames.
  CameraFrames() : decoder_({.open_files = 4, .shared_frame_bytes = 0}) {}

  /// Frames first + frames[i] of `source`; frames ascending. Errors: those of ClipDecoder, read_parquet,
  /// StillImageDecoder; deadline_exceeded after 60 s and half a second per frame.
  Result<void> read(const ImageSource& source, std::span<const std::int64_t> frames, const Sink& sink);
  /// Facts of frames source.first .. source.first + count - 1, ascending. Same errors.
  Result<void> read_facts(const ImageSource& source, std::int64_t count, const FactSink& sink);

 private:
  ClipDecoder decoder_;
  StillImageDecoder stills_;
  StillImage still_;
};

}  // namespace troupe::data
