#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"
#include "image/video_frame.h"

namespace troupe::data {

/// The decoded frames of a clip, read from the cache: a mapped file whose hash was checked. The views are valid while
/// the object lives.
class CachedClip {
 public:
  /// `file` holds the header and planes of frames of height x width pixels.
  CachedClip(MappedFile file, std::int64_t height, std::int64_t width, ColorMatrix matrix, bool full_range)
      : file_(std::move(file)), height_(height), width_(width), matrix_(matrix), full_range_(full_range) {}
  /// Frame `place` of the clip, counting distinct frames in presentation order.
  Yuv420View frame(std::size_t place) const;

 private:
  MappedFile file_;
  std::int64_t height_, width_;
  ColorMatrix matrix_;
  bool full_range_;
};

/// A clip in the making: planes without gaps, ready to be written. Its memory is reused from clip to clip.
class ClipRecord {
 public:
  /// Appends a frame; all have the size and colours of the first.
  void add(const Yuv420View& frame);
  /// Forgets the frames and keeps the memory.
  void clear() { bytes_.clear(), frames_ = 0; }
  /// Frames added since the last clear().
  std::size_t frames() const noexcept { return frames_; }

 private:
  friend class ClipCache;
  // Header and planes.
  std::vector<std::byte> bytes_;
  std::size_t frames_ = 0;
  // Size and colours; no planes.
  Yuv420View like_;
};

/// Decoded clips in a folder, one file each, named by content (clip_key.h). The bytes are described in docs/video.md.
/// Any number of processes may share a folder: a file appears whole, under its final name, and never changes; a damaged
/// one is deleted and counts as absent. The folder belongs on a local disk. Not thread-safe: one object per decoder.
class ClipCache {
 public:
  /// Keeps at most `most_bytes` in the folder, made on first use.
  ClipCache(std::string folder, std::int64_t most_bytes);

  /// The clip of that name with this many frames of this size, or nothing.
  std::optional<CachedClip> find(const std::string& key, std::size_t frames, std::int64_t height, std::int64_t width);
  /// Writes a clip of at least one frame; one larger than a tenth of the bound is not kept. A failure is logged once
  /// and ends the writing, never the reading of samples.
  void store(const std::string& key, ClipRecord& clip);
  /// Counts the folder and, beyond the bound, deletes the clips that were used longest ago until a tenth is free.
  /// One process at a time; others return at once. Errors: those of file_error.
  Result<void> trim();

  /// Clips that were deleted because they were damaged.
  std::int64_t damaged() const noexcept { return damaged_; }
  /// Path of a clip's file.
  std::string path_of(const std::string& key) const;

 private:
  Result<void> write(const std::string& path, const ClipRecord& clip);

  const std::string folder_;
  const std::int64_t most_bytes_;
  /// Bytes since the last trim; the next one comes after 1/256 of the bound.
  std::int64_t written_ = 0;
  std::int64_t damaged_ = 0;
  std::uint64_t sequence_ = 0;
  bool trimmed_ = false, broken_ = false;
};

}  // namespace troupe::data
