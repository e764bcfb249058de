#pragma once

// Internal to data/convert: which episodes go into which files. A pure function of the inputs and options, so that an
// attempt that was killed can be continued.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/convert/convert_dataset.h"
#include "data/convert/dataset_source.h"
#include "data/convert/rational.h"

namespace troupe::data {

/// Frames of one camera of an episode in the source.
struct PlannedSpan {
  /// Frames [first, first + frames) of the source's file, by presentation index.
  std::int64_t first = 0, frames = 0;
  std::int64_t bytes = 0, delay = 0;
  /// codec_identity() of the source's file: the files of one output have one.
  std::string codec;
  /// Why the packets cannot be copied; empty when they can.
  std::string why_not_copied;
  bool has_stats = false;
};

/// One episode of the output, and where it comes from.
struct PlannedEpisode {
  /// sources[source].episodes[place].
  std::size_t source = 0, place = 0;
  /// episode_index of the output.
  std::int64_t index = 0;
  std::int64_t first_row = 0, length = 0;
  /// Uncompressed bytes of its table; of a shared file its share by rows.
  std::int64_t bytes = 0;
  /// Digest of its columns and types: tables of one file have one.
  std::string schema;
  bool has_stats = false;
  /// One per camera, in the order of ConvertPlan::cameras.
  std::vector<PlannedSpan> spans;
};

/// One file of the output: episodes [first, first + count).
struct PlannedOutput {
  /// Relative to the output.
  std::string path;
  /// chunk_index and file_index of v3.0's metadata.
  std::int64_t chunk = 0, file = 0;
  std::size_t first = 0, count = 0;
  /// Video files: the frames are coded anew.
  bool encode = false;
};

/// What one thread does and the journal records: files of one kind.
struct PlannedTask {
  /// Place in ConvertPlan::cameras; -1: data files.
  int camera = -1;
  std::vector<PlannedOutput> files;
};

/// The whole conversion. Immutable once made: every thread reads it. A few hundred bytes per episode.
struct ConvertPlan {
  std::vector<std::string> cameras;
  std::vector<PlannedEpisode> episodes;
  std::vector<PlannedTask> tasks;
  /// task_index -> text of the output.
  std::map<std::int64_t, std::string> texts;
  /// Per source: old task_index -> new; empty: the same.
  std::vector<std::map<std::int64_t, std::int64_t>> task_of;
  /// Episodes of a source are missing: left out, or not among those that were asked for; or a source was repaired.
  bool partial = false;
  /// Episodes and rows have new numbers: several sources, or a source with gaps.
  bool renumbered = false;
  FrameRate rate;
  std::int64_t frames = 0;
  std::vector<DatasetProblem> left_out;
  std::vector<std::string> notes;
  /// Contents of .troupe/convert/plan.json; `resume` compares it byte by byte.
  std::string text;
};

/// Reads the columns of numbers of all tables and the sample tables of all videos. Errors: as convert_dataset.
Result<ConvertPlan> make_plan(const ConvertDatasetRequest& request, std::vector<DatasetSource>& sources);

/// When a file of the output is closed.
struct FileLimits {
  /// Most episodes of a file; 0: any number.
  std::int64_t episodes = 0;
  /// Most bytes of a file; 0: any number.
  std::int64_t bytes = 0;
  /// Closes the file where sum + size >= bytes, else where it is > bytes.
  bool lerobot = false;
};
/// Episodes [first, last) of consecutive files. `size` is in bytes, one per episode; `breaks[i]`: a new file begins
/// before episode i in any case. An episode larger than the limit gets a file of its own. Pure.
std::vector<std::pair<std::size_t, std::size_t>> pack_files(const std::vector<std::int64_t>& size,
                                                            const std::vector<bool>& breaks, const FileLimits& limits);

/// LeRobot's chunk and file of the n-th file: the file after `kFilesPerChunk` - 1 is (chunk + 1, 0).
inline constexpr std::int64_t kFilesPerChunk = 1000;
inline std::pair<std::int64_t, std::int64_t> place_of_file(std::int64_t n) {
  return {n / kFilesPerChunk, n % kFilesPerChunk};
}

}  // namespace troupe::data
