#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace troupe::data {

/// A file of meta/ that is to be written.
struct MetaText {
  /// Name in the folder: "stats.json".
  std::string name;
  std::string text;
};

/// What became of one file.
struct MetadataOutcome {
  /// written: new or replaced. unchanged: it had these contents. kept: someone else wrote it, so it stays.
  enum class Kind { written, unchanged, kept } kind = Kind::written;
  std::string path;
};

/// Writes the files into `folder` durably, each whole or not at all. A file that is there with other contents is
/// replaced only when this function wrote it; otherwise it is kept. What was written is remembered in
/// <folder>/troupe_written.json, so that a crash in between changes nothing about that.
///
/// Returns one outcome per file, in order. `out_option` says how else to write, in errors: failed_precondition (the
/// folder cannot be written to), data_loss (troupe_written.json is damaged), and those of write_file_durably.
Result<std::vector<MetadataOutcome>> write_metadata(const std::string& folder, std::span<const MetaText> files,
                                                    const std::string& out_option);

}  // namespace troupe::data
