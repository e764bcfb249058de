#include "workers/checkpoint/shard_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "base/hash.h"
#include "kernels/element.h"
#include "workers/checkpoint/manifest.h"

namespace troupe::workers {

namespace {

Error damaged(const std::string& path, const std::string& why) {
  return {Errc::data_loss, fmt::format("{}: {}", path, why)};
}

void copy_floats(std::span<const std::byte> bytes, float* out) { std::memcpy(out, bytes.data(), bytes.size()); }

void widen(std::span<const std::byte> bytes, float* out) {
  for (std::size_t i = 0; i < bytes.size() / 2; ++i) {
    kernels::simd::Bf16 half{};
    std::memcpy(&half, bytes.data() + 2 * i, 2);
    out[i] = kernels::simd::to_float(half);
  }
}

}  // namespace

Result<ShardFiles::RankFile> ShardFiles::open_rank(const std::string& directory, const ManifestFile& listed,
                                                   const Layout& layout) {
  const std::string path = directory + "/" + listed.name;
  auto file = SafetensorsReader::open(path);
  if (!file) return Error{Errc::data_loss, file.error().message()};
  RankFile rank{.file = std::move(*file), .listed = listed, .chunks = std::make_unique<Chunks>(), .tensors = {}};
  for (const Layout::Unit& unit : layout.units) {
    auto& tensors = rank.tensors.emplace_back();
    for (const auto& [name, dtype] : unit.tensors) {
      auto info = rank.file.info(name);
      if (!info) return Error{Errc::data_loss, info.error().message()};
      if (info->dtype != dtype || info->shape != std::vector<std::int64_t>{unit.shard}) {
        return damaged(path, fmt::format("tensor '{}' is {} [{}]; the layout needs {} [{}]", name, info->dtype,
                                         fmt::join(info->shape, ", "), dtype, unit.shard));
      }
      tensors.push_back(std::move(*info));
    }
  }
  return rank;
}

Result<ShardFiles> ShardFiles::open(const std::string& directory, Layout layout,
                                    const std::vector<ManifestFile>& files) {
  ShardFiles opened;
  for (std::int64_t rank = 0; rank < layout.world; ++rank) {
    const std::string name = Manifest::rank_file(rank, layout.world);
    const auto listed =
        std::find_if(files.begin(), files.end(), [&](const ManifestFile& file) { return file.name == name; });
    if (listed == files.end()) return damaged(directory, fmt::format("its manifest does not list {}", name));
    TROUPE_ASSIGN(RankFile file, open_rank(directory, *listed, layout));
    opened.ranks_.push_back(std::move(file));
  }
  opened.directory_ = directory;
  opened.layout_ = std::move(layout);
  return opened;
}

Result<const CheckedChunks*> ShardFiles::chunks_of(const RankFile& rank) const {
  const std::lock_guard lock(rank.chunks->mutex);
  auto& opened = rank.chunks->opened;
  if (!opened) {
    TROUPE_ASSIGN(std::string list, read_chunk_list(directory_, rank.listed));
    TROUPE_ASSIGN(opened, CheckedChunks::open(rank.file.path(), rank.file.file_bytes(), std::move(list)));
  }
  return &*opened;
}

Result<void> ShardFiles::read_rank(const RankFile& from, const TensorInfo& tensor, std::int64_t begin,
                                   std::int64_t count, float* out) const {
  const std::int64_t width = tensor.dtype == "BF16" ? 2 : 4;
  if (from.listed.has_chunks) {
    TROUPE_ASSIGN(const CheckedChunks* chunks, chunks_of(from));
    TROUPE_TRY(chunks->check(tensor.offset + begin * width, count * width));
  }
  const auto bytes =
      tensor.bytes.subspan(static_cast<std::size_t>(begin * width), static_cast<std::size_t>(count * width));
  width == 2 ? widen(bytes, out) : copy_floats(bytes, out);
  return {};
}

Result<void> ShardFiles::read(std::size_t unit, std::size_t tensor, std::int64_t begin, std::int64_t count,
                              float* out) const {
  const std::int64_t shard = layout_.units[unit].shard, end = begin + count;
  for (std::int64_t at = begin; at < end;) {
    const std::int64_t rank = at / shard, n = std::min(end, (rank + 1) * shard) - at;
    const RankFile& from = ranks_[static_cast<std::size_t>(rank)];
    TROUPE_TRY(read_rank(from, from.tensors[unit][tensor], at % shard, n, out));
    out += n;
    at += n;
  }
  return {};
}

Result<void> ShardFiles::check_all() const {
  for (const RankFile& rank : ranks_) {
    if (rank.listed.has_chunks) {
      TROUPE_ASSIGN(const CheckedChunks* chunks, chunks_of(rank));
      TROUPE_TRY(chunks->check_all());
      continue;
    }
    const std::string digest = xxh3_128_hex(rank.file.file_bytes());
    if (digest != rank.listed.digest)
      return damaged(rank.file.path(), fmt::format("XXH3-128 is {}; the manifest says {}", digest, rank.listed.digest));
  }
  return {};
}

std::int64_t ShardFiles::checked_bytes() const {
  std::int64_t bytes = 0;
  for (const RankFile& rank : ranks_) {
    const std::lock_guard lock(rank.chunks->mutex);
    const auto& opened = rank.chunks->opened;
    if (opened) bytes += opened->checked_bytes() + chunk_list_bytes(rank.listed.size);
  }
  return bytes;
}

}  // namespace troupe::workers
