#pragma once

#include <cstdint>

namespace troupe {

/// Where the time of making samples went, in seconds of the thread that made them, and what was read for it. The stages
/// do not overlap: their sum is the time of building plus the collation after it.
struct StageTimes {
  double read = 0;       ///< waiting for bytes of video files
  double decode = 0;     ///< codecs, pictures of PNG and JPEG
  double convert = 0;    ///< YUV to RGB, where it is a step of its own
  double transform = 0;  ///< crop, resize, jitter, placing on the canvas
  double table = 0;      ///< rows of Parquet files, state and action
  double text = 0;       ///< instruction, prompt, tokens
  double collate = 0;    ///< samples into batches
  std::int64_t pictures_decoded = 0;
  std::int64_t pictures_delivered = 0;
  std::int64_t bytes_read = 0;
  std::int64_t cache_hits = 0;    ///< clips that came from shared frames or the clip cache
  std::int64_t cache_misses = 0;  ///< clips that were looked for there and had to be decoded

  StageTimes& operator+=(const StageTimes& other) noexcept {
    read += other.read;
    decode += other.decode;
    convert += other.convert;
    transform += other.transform;
    table += other.table;
    text += other.text;
    collate += other.collate;
    pictures_decoded += other.pictures_decoded;
    pictures_delivered += other.pictures_delivered;
    bytes_read += other.bytes_read;
    cache_hits += other.cache_hits;
    cache_misses += other.cache_misses;
    return *this;
  }
};

}  // namespace troupe
