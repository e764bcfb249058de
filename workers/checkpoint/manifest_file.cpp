#include "workers/checkpoint/manifest_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <span>
#include <system_error>

#include "base/file_io.h"
#include "base/hash.h"
#include "model/io/chunk_digests.h"

namespace troupe::workers {

namespace {

Result<void> check_size(const std::string& path, std::int64_t wanted) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error) return Error{Errc::data_loss, fmt::format("{}: {}; the manifest lists it", path, error.message())};
  if (static_cast<std::int64_t>(size) == wanted) return {};
  return Error{Errc::data_loss, fmt::format("{}: {} bytes; the manifest says {}", path, size, wanted)};
}

Result<std::string> read_compared(const std::string& path, std::int64_t size, const std::string& digest) {
  auto text = read_file(path, size);
  if (!text) return Error{Errc::data_loss, text.error().message()};
  const std::string found = xxh3_128_hex(std::as_bytes(std::span(*text)));
  if (found == digest) return text;
  return Error{Errc::data_loss, fmt::format("{}: XXH3-128 is {}; the manifest says {}", path, found, digest)};
}

}  // namespace

bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos;
}

Result<void> check_sizes(const std::string& directory, const std::vector<ManifestFile>& files) {
  for (const ManifestFile& file : files) {
    TROUPE_TRY(check_size(directory + "/" + file.name, file.size));
    if (file.has_chunks) TROUPE_TRY(check_size(directory + "/" + file.list_name(), chunk_list_bytes(file.size)));
  }
  return {};
}

Result<std::string> read_chunk_list(const std::string& directory, const ManifestFile& file) {
  return read_compared(directory + "/" + file.list_name(), chunk_list_bytes(file.size), file.digest);
}

Result<std::string> read_small_file(const std::string& directory, const ManifestFile& file) {
  return read_compared(directory + "/" + file.name, file.size, file.digest);
}

}  // namespace troupe::workers
