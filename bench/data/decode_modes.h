#pragma once

#include <string>
#include <vector>

#include "bench/data/decode_clips.h"

namespace troupe::bench {

/// What one way of decoding cost over the clips of a set.
struct DecodeCost {
  std::string set, mode;
  double cpu_ms = 0;         ///< user and system time of the whole process, per clip
  double fed_per_given = 0;  ///< coded frames decoded per frame delivered
};

struct DecodeModes {
  std::string work_folder;  ///< the clip cache goes there
  std::int64_t shared_frame_bytes = std::int64_t{2} << 30;
  std::int64_t buffer_samples = 256;  ///< size of the shuffle buffer of the shared mode
};

/// Throws std::runtime_error when a frame that ClipDecoder gives (plain, shared, from the clip cache) differs from what
/// libavcodec gives for the whole file.
void check_frames(const DecodeSet& set, const DecodeModes& modes);

/// One round: "bare", "ours", "ours, RGB", "ours, shared", "ours, cached".
std::vector<DecodeCost> measure(const DecodeSet& set, const DecodeModes& modes);

/// Lines "set<TAB>mode<TAB>cpu ms<TAB>fed per given", appended by rounds of this program and of decode_bench.py.
std::vector<DecodeCost> read_costs(const std::string& file);
/// The result file's text.
std::string decode_report(const std::vector<DecodeCost>& costs, const std::string& command, const std::string& note);

}  // namespace troupe::bench
