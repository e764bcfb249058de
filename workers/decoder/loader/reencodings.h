#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/job_config.h"
#include "data/mixture.h"
#include "workers/decoder/loader/loader_result.h"

namespace troupe::workers {

/// One way in which a dataset's videos are or could be coded, and what frames cost that are read from it. Measured on a
/// few windows of one file.
struct CodedForm {
  /// FFmpeg's name.
  std::string codec;
  /// Pixels of a frame.
  std::int64_t width = 0, height = 0;
  /// Frames from one key frame to the next; of a file as it is, their mean.
  double key_distance = 0;
  /// Frames that are decoded for each that is delivered.
  double decoded_per_delivered = 0;
  /// Read, decode, crop and resize; of one thread, for each frame delivered.
  double seconds_per_frame = 0;
  /// Coded frames that were tried, and their bytes.
  std::int64_t frames = 0, bytes = 0;
  double kibibytes_per_frame() const {
    return frames > 0 ? static_cast<double>(bytes) / 1024 / static_cast<double>(frames) : 0;
  }
};

/// What coding a dataset's videos anew would bring.
struct Reencodings {
  /// The file that was tried, and how many of its frames.
  std::string file;
  std::int64_t frames = 0;
  /// As the file is.
  CodedForm now;
  /// Pixels that a frame needs so that the job's crop is resized without enlarging anything.
  std::int64_t needed_width = 0, needed_height = 0;
  /// Coded anew, in the order of trying; samples/s of the loader that was measured, were all its videos like this.
  struct Trial {
    CodedForm form;
    double samples_per_second = 0;
    /// The command line that makes such a dataset.
    std::string command;
  };
  std::vector<Trial> trials;
  /// Place in trials of the one to advise; -1: none is at least a fifth faster than what is there.
  std::int64_t best = -1;
};

/// Tries what `troupe convert dataset` can do to the videos of the mixture's first dataset: frames of its first view
/// are coded anew in a temporary folder, H.264 with a key frame every 2 and every 12 frames, at their size and, where
/// the job needs less than nine tenths of it, at the needed size. Each form and the file itself are read through the
/// job's window by the loader's own decoder and image chain, alternating. Takes seconds; `stopped` ends it early.
///
/// Errors: failed_precondition (no video, a folder that cannot be written, no H.264 encoder), those of ClipDecoder and
/// recode_clip; unavailable when stopped.
Result<Reencodings> try_reencodings(const Mixture& mixture, const JobConfig& job, const LoaderResult& measured,
                                    const std::function<bool()>& stopped);

}  // namespace troupe::workers
