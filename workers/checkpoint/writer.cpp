#include "workers/checkpoint/writer.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/durable_file.h"
#include "base/fault.h"
#include "base/file_io.h"
#include "base/hash.h"
#include "base/log.h"
#include "model/io/chunk_digests.h"
#include "model/io/safetensors.h"
#include "workers/checkpoint/rank_file_writer.h"

namespace troupe::workers {

namespace {

namespace fs = std::filesystem;

Result<void> check(const CheckpointRequest& request) {
  const Manifest& m = request.manifest;
  const auto bad = [&](std::string why) {
    return Error{Errc::invalid_argument, fmt::format("checkpoint {}: {}", request.directory, why)};
  };
  if (fs::path(request.directory).filename().string().find(".tmp-") == std::string::npos) {
    return bad("its name must end in .tmp-<fence>; a committed checkpoint is never written to");
  }
  if (m.world < 1 || request.ranks.size() != static_cast<std::size_t>(m.world)) {
    return bad(fmt::format("{} rank states for a world of {}", request.ranks.size(), m.world));
  }
  for (std::size_t r = 0; r < request.ranks.size(); ++r) {
    if (static_cast<std::int64_t>(request.ranks[r].size()) == snapshot_bytes(m)) continue;
    return bad(fmt::format("rank {} has {} bytes of state; its layout needs {}", r, request.ranks[r].size(),
                           snapshot_bytes(m)));
  }
  for (const CheckpointAttachment& a : request.attachments) {
    if (!is_plain_name(a.name) || a.name.starts_with("manifest.json") || a.name.starts_with("rank-")) {
      return bad(fmt::format("attachment '{}' does not have a free plain name", a.name));
    }
  }
  return {};
}

Result<void> create_directory(const std::string& path) {
  TROUPE_TRY(fault_point("checkpoint.create", path));
  std::error_code error;
  fs::remove_all(path, error);
  if (error) return file_error(path, "an earlier attempt cannot be removed", error.value());
  if (::mkdir(path.c_str(), 0755) != 0) return file_error(path, "cannot be created", errno);
  return {};
}

Result<ManifestFile> write_rank(const CheckpointRequest& request, std::size_t rank) {
  const Manifest& m = request.manifest;
  std::vector<TensorDeclaration> tensors;
  for (const ManifestUnit& unit : m.units) {
    for (std::size_t k = 0; k < unit.num_kinds(); ++k) {
      tensors.push_back({unit.tensor_name(k), unit.tensor_dtype(k), {unit.shard(m.world)}});
    }
  }
  // The declared order is the order of the snapshot, so the bytes pass through as they are.
  const std::string name = Manifest::rank_file(static_cast<std::int64_t>(rank), m.world);
  return write_rank_file(request.directory + "/" + name, tensors, std::span(&request.ranks[rank], 1));
}

Result<ManifestFile> write_attachment(const CheckpointRequest& request, const CheckpointAttachment& attachment) {
  const std::string path = request.directory + "/" + attachment.name;
  TROUPE_TRY(fault_point("checkpoint.write", path));
  TROUPE_TRY(write_file_synced(path, attachment.bytes));
  return ManifestFile{.name = attachment.name,
                      .size = static_cast<std::int64_t>(attachment.bytes.size()),
                      .digest = xxh3_128_hex(std::as_bytes(std::span(attachment.bytes)))};
}

Result<WrittenCheckpoint> write_files(const CheckpointRequest& request) {
  TROUPE_TRY(create_directory(request.directory));
  Manifest manifest = request.manifest;
  manifest.files.clear();
  for (std::size_t r = 0; r < request.ranks.size(); ++r) {
    TROUPE_ASSIGN(ManifestFile file, write_rank(request, r));
    manifest.files.push_back(std::move(file));
  }
  for (const CheckpointAttachment& a : request.attachments) {
    TROUPE_ASSIGN(ManifestFile file, write_attachment(request, a));
    manifest.files.push_back(std::move(file));
  }
  TROUPE_TRY(sync_directory(request.directory));
  const std::string path = request.directory + "/manifest.json", text = manifest_to_json(manifest);
  TROUPE_TRY(fault_point("checkpoint.manifest", path));
  TROUPE_TRY(write_file_durably(path, text));
  WrittenCheckpoint written{.directory = request.directory,
                            .bytes = static_cast<std::int64_t>(text.size()),
                            .manifest_hash = xxh3_128_hex(std::as_bytes(std::span(text)))};
  for (const ManifestFile& file : manifest.files)
    written.bytes += file.size + (file.has_chunks ? chunk_list_bytes(file.size) : 0);
  return written;
}

}  // namespace

std::int64_t snapshot_bytes(const Manifest& manifest) {
  std::int64_t bytes = 0;
  for (const ManifestUnit& unit : manifest.units) {
    bytes += unit.shard(manifest.world) * unit.saved_bytes();
  }
  return bytes;
}

Result<WrittenCheckpoint> CheckpointWriter::write(const CheckpointRequest& request) const {
  TROUPE_TRY(check(request));
  auto written = write_files(request);
  if (written) return written;
  std::error_code error;
  fs::remove_all(request.directory, error);
  // Pruning removes what is left: a directory without a manifest is garbage.
  if (error) log::warn("{}: cannot be removed after a failed checkpoint: {}", request.directory, error.message());
  return Error{Errc::resource_exhausted,
               fmt::format("checkpoint of step {} not written: {}", request.manifest.step, written.error().message())};
}

}  // namespace troupe::workers
