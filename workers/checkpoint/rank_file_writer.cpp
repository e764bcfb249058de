#include "workers/checkpoint/rank_file_writer.h"

#include <algorithm>
#include <filesystem>

#include "base/durable_file.h"
#include "base/fault.h"
#include "base/hash.h"

namespace troupe::workers {

namespace {

constexpr std::size_t kPiece = std::size_t{16} << 20;

}  // namespace

Result<ManifestFile> write_rank_file(const std::string& path, const std::vector<TensorDeclaration>& tensors,
                                     std::span<const std::span<const std::byte>> parts) {
  TROUPE_ASSIGN(auto file, SafetensorsWriter::create(path, tensors, {{"format", "troupe-shard-1"}}));
  for (std::span<const std::byte> rest : parts) {
    while (!rest.empty()) {
      const std::size_t n = std::min(rest.size(), kPiece);
      TROUPE_TRY(fault_point("checkpoint.write", path));
      TROUPE_TRY(file.append(rest.first(n)));
      rest = rest.subspan(n);
    }
  }
  TROUPE_TRY(file.finish());
  TROUPE_TRY(fault_point("checkpoint.fsync", path));
  TROUPE_TRY(file.sync());
  const std::string list = file.chunk_list();
  ManifestFile written{.name = std::filesystem::path(path).filename().string(),
                       .size = file.size(),
                       .digest = xxh3_128_hex(std::as_bytes(std::span(list))),
                       .has_chunks = true};
  TROUPE_TRY(write_file_synced(path + ".xxh3", list));
  return written;
}

}  // namespace troupe::workers
