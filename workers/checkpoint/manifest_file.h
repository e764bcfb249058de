#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace troupe::workers {

/// One file beside a manifest.
struct ManifestFile {
  std::string name;
  /// Bytes.
  std::int64_t size = 0;
  /// XXH3-128, 32 hex digits: of the file, or of its list of digests by chunk where it has one.
  std::string digest = {};
  /// Whether NAME.xxh3 lies beside it: the digests of its chunks (model/io/chunk_digests.h).
  bool has_chunks = false;

  std::string list_name() const { return name + ".xxh3"; }
};

/// A file name without folders: not empty, no '/', not "." or "..". Names out of a manifest are checked with it, so
/// that no file outside of the checkpoint's folder is opened.
bool is_plain_name(std::string_view name);

/// Whether every file, and its list of digests, is there with its size; nothing is read. Errors: data_loss naming the
/// first that is not.
Result<void> check_sizes(const std::string& directory, const std::vector<ManifestFile>& files);

/// The list of digests of a file that has one, compared with the manifest's digest. Errors: data_loss.
Result<std::string> read_chunk_list(const std::string& directory, const ManifestFile& file);

/// A small file without a list, compared with its digest. Errors: data_loss.
Result<std::string> read_small_file(const std::string& directory, const ManifestFile& file);

}  // namespace troupe::workers
