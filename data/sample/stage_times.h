#pragma once

#include <cstdint>

#include "base/namespaces.h"

namespace troupe::data {

/// Where the time of making samples went, in seconds of the thread that made them, and what was read for it. The stages
/// do not overlap: their sum is the time of building plus the collation after it.
/// A plain value: copy it out of the thread that counts.
struct StageTimes {
  /// Waiting for bytes of video files.
  double read = 0;
  /// Inside video codecs and the PNG and JPEG decoders.
  double decode = 0;
  /// YUV to RGB, where it is a step of its own; the image chain does it in `transform`.
  double convert = 0;
  /// Crop, resize, jitter, placing on the canvas.
  double transform = 0;
  /// Rows of Parquet files, state and action.
  double table = 0;
  /// Instruction, prompt, tokens.
  double text = 0;
  /// Samples into batches.
  double collate = 0;
  /// Coded frames given to a decoder; with long groups many more than are delivered.
  std::int64_t frames_decoded = 0;
  /// Frames handed to the image chain.
  std::int64_t frames_delivered = 0;
  /// Bytes of coded frames and images, from disk or the page cache.
  std::int64_t bytes_read = 0;
  /// Frames that came from shared frames or the clip cache.
  std::int64_t cache_hits = 0;
  /// Frames that were looked for there and had to be decoded.
  std::int64_t cache_misses = 0;

  /// Adds every stage and count: times of several threads add up to more than wall time.
  StageTimes& operator+=(const StageTimes& other) noexcept {
    read += other.read;
    decode += other.decode;
    convert += other.convert;
    transform += other.transform;
    table += other.table;
    text += other.text;
    collate += other.collate;
    frames_decoded += other.frames_decoded;
    frames_delivered += other.frames_delivered;
    bytes_read += other.bytes_read;
    cache_hits += other.cache_hits;
    cache_misses += other.cache_misses;
    return *this;
  }
};

}  // namespace troupe::data
