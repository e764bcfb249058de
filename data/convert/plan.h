#pragma once

// Internal to data/convert: which episodes go into which files. A pure function of the inputs and options,
// so that
// an attempt that was killed can be continued.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/convert/convert_dataset.h"
#include "data/convert/dataset_source.h"
#include "data/convert/rational.h"

namespace troupe {

/// Pictures of one camera of an episode in the source.
struct PlannedSpan {
  std::int64_t first = 0, pictures = 0;  ///< in the source's file
  std::int64_t bytes = 0, delay = 0;
  std::string codec;           ///< codec_identity
  std::string why_not_copied;  ///< empty: the packets can be copied
  bool has_stats = false;
};

struct PlannedEpisode {
  std::size_t source = 0, place = 0;  ///< sources[source].episodes[place]
  std::int64_t index = 0;             ///< in the output
  std::int64_t first_row = 0, length = 0;
  std::int64_t bytes = 0;  ///< of its table, uncompressed
  std::string schema;      ///< digest of its columns and types
  bool has_stats = false;
  std::vector<PlannedSpan> spans;  ///< one a camera
};

/// One file of the output: episodes [first, first + count).
struct PlannedOutput {
  std::string path;                  ///< relative to the output
  std::int64_t chunk = 0, file = 0;  ///< v3.0
  std::size_t first = 0, count = 0;
  bool encode = false;  ///< video: coded anew
};

/// What one thread does and the journal records: files of one kind.
struct PlannedTask {
  int camera = -1;  ///< -1: tables
  std::vector<PlannedOutput> files;
};

struct ConvertPlan {
  std::vector<std::string> cameras;
  std::vector<PlannedEpisode> episodes;
  std::vector<PlannedTask> tasks;
  std::map<std::int64_t, std::string> texts;                  ///< task_index -> text of the output
  std::vector<std::map<std::int64_t, std::int64_t>> task_of;  ///< per source: old task_index -> new; empty: the same
  bool renumbered = false;                                    ///< episodes and rows have new numbers
  FrameRate rate;
  std::int64_t frames = 0;
  std::vector<DatasetProblem> left_out;
  std::vector<std::string> notes;
  std::string text;  ///< the plan file
};

/// Reads the footers of all tables and the sample tables of all videos. Errors: as convert_dataset.
Result<ConvertPlan> make_plan(const ConvertDatasetRequest& request, std::vector<DatasetSource>& sources);

/// Episodes [first, last) of consecutive files under LeRobot's and our limits. `size` is in bytes; `breaks[i]`: a
/// new file
/// begins before i in any case.
struct FileLimits {
  std::int64_t episodes = 0;  ///< 0: any number
  std::int64_t bytes = 0;     ///< largest sum
  bool lerobot = false;       ///< closes the file where sum + size >= bytes, else where it is > bytes
};
std::vector<std::pair<std::size_t, std::size_t>> pack_files(const std::vector<std::int64_t>& size,
                                                            const std::vector<bool>& breaks, const FileLimits& limits);

/// LeRobot's chunk and file of the n-th file: the file after `kFilesPerChunk` - 1 is (chunk + 1, 0).
inline constexpr std::int64_t kFilesPerChunk = 1000;
inline std::pair<std::int64_t, std::int64_t> place_of_file(std::int64_t n) {
  return {n / kFilesPerChunk, n % kFilesPerChunk};
}

}  // namespace troupe
