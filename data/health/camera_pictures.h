#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/image/video_frame.h"
#include "data/lerobot/lerobot_dataset.h"
#include "data/lerobot/parquet_table.h"
#include "data/video/clip_decoder.h"
#include "data/video/still_image.h"

namespace troupe {

/// Reads pictures of a camera wherever they are: a video or an image column. One thread, one reader.
class CameraPictures {
 public:
  /// Gets picture frames[i] of the source as RGB; the view is valid during the call.
  using Sink = std::function<Result<void>(std::size_t i, const Rgb8View& picture)>;
  /// The same as hashable facts, without a conversion to RGB where the file holds YUV.
  struct Fact {
    std::uint64_t hash = 0;  ///< XXH3-64 over all planes
    bool black = false;      ///< no luma above 24 of 255 (limited range: 16 is black)
  };
  using FactSink = std::function<Result<void>(std::size_t i, const Fact& fact)>;

  CameraPictures() : decoder_({.open_files = 4, .shared_frame_bytes = 0}) {}

  /// Pictures first + frames[i] of `source`; frames ascending. Errors: those of ClipDecoder, read_parquet,
  /// StillImageDecoder.
  Result<void> read(const PictureSource& source, std::span<const std::int64_t> frames, const Sink& sink);
  /// Pictures first .. first + count - 1.
  Result<void> read_facts(const PictureSource& source, std::int64_t count, const FactSink& sink);

 private:
  ClipDecoder decoder_;
  StillImageDecoder stills_;
  StillImage still_;
};

}  // namespace troupe
