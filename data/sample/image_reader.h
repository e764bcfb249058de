#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "configs/data_config.h"
#include "data/lerobot/lerobot_dataset.h"
#include "data/lerobot/parquet_table.h"
#include "data/sample/stage_times.h"
#include "data/video/clip_decoder.h"
#include "data/video/still_image.h"
#include "image/video_frame.h"

namespace troupe::data {

/// Delivers chosen frames of a video file, as ClipDecoder::read does: frames are presentation indices of the file,
/// ascending.
/// A failure comes back with its path at the front of the text.
using ReadClip = std::function<Result<void>(const std::string& path, std::span<const std::int64_t> frames,
                                            const ClipDecoder::RgbSink& sink, ClipDecoder::Deadline deadline)>;

/// What data.decoder says of reading videos. `find_table` is asked before a file's own tables are read; empty: nothing.
ClipDecoder::Options decoder_options(const DecoderConfig& config, FindPacketTable find_table = {});

/// Gets the frame of rows[i] in the form in which it was stored: `yuv` for videos, `rgb` for images in Parquet. Views
/// are valid during the call. An Error stops the read and is returned from it.
/// Both are called on the thread that reads.
struct ImageSink {
  ClipDecoder::YuvSink yuv;
  ClipDecoder::RgbSink rgb;
};

/// Frames of episodes, whether they are in videos or in Parquet. Keeps files, tables and codecs open between calls. Not
/// thread-safe: one thread, one reader.
class ImageReader {
 public:
  using Deadline = ClipDecoder::Deadline;

  /// `read_clip` reads videos in place of a decoder of its own, for tests; empty: a ClipDecoder with these options.
  explicit ImageReader(ClipDecoder::Options options, ReadClip read_clip = {});

  /// Delivers the frames of `rows` (of the episode, ascending, repeats allowed) of a camera. `block_rows`: all that
  /// the samples of a locality block want of the same episode, ascending; empty: nothing is kept for others.
  /// The sink gets the place i in `rows`, ascending; after a decode error, which is tried once more, from the start
  /// again.
  /// Errors: those of ClipDecoder::read_yuv, read_image_cells and StillImageDecoder; deadline_exceeded; a sink's own.
  Result<void> read(const ImageSource& source, std::span<const std::int64_t> rows,
                    std::span<const std::int64_t> block_rows, const ImageSink& sink, Deadline deadline);

  /// Work since construction: seconds of `read` and `decode`, and the counts; the other stages stay zero.
  StageTimes times() const;

 private:
  Result<void> read_stills(const ImageSource& source, std::span<const std::int64_t> rows, const ImageSink& sink,
                           Deadline deadline);

  std::unique_ptr<ClipDecoder> decoder_;
  ReadClip read_clip_;
  ParquetFiles files_;
  StillImageDecoder stills_;
  StillImage still_;
  StageTimes own_;
};

}  // namespace troupe::data
