#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace troupe::data {

/// What the boxes of an MP4 file (ISO/IEC 14496-12) say of its first video track; read without a demuxer.
struct Mp4Facts {
  /// Ticks a second of the track; 0: not read.
  std::uint32_t timescale = 0;
  /// The index (moov) lies in front of the frames.
  bool fast_start = false;
  /// An edit list does more than begin at the first frame.
  bool edit_list = false;
  bool operator==(const Mp4Facts&) const = default;
};

/// Reads top-level box headers and the moov box, nothing else: three reads for a usual file.
/// Errors: those of file_error; data_loss (no moov, no video track, a box that reaches outside its parent, a moov of
/// more than 64 MiB).
Result<Mp4Facts> read_mp4_facts(const std::string& path);

}  // namespace troupe::data
