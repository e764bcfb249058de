#include "workers/checkpoint/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

#include "base/file_io.h"
#include "base/hash.h"
#include "model/io/safetensors.h"

namespace troupe::workers {

namespace {

Error damaged(const std::string& path, std::string_view why) {
  return {Errc::data_loss, fmt::format("{}: {}", path, why)};
}

std::string describe(const ManifestParam& p) {
  return fmt::format("'{}' [{}] at element {}", p.name, fmt::join(p.shape, ", "), p.offset);
}

// What differs first between two units of one place in the chain, or nothing.
std::string first_difference(const ManifestUnit& have, const ManifestUnit& want) {
  if (have.name != want.name) return fmt::format("unit '{}' where the model has '{}'", have.name, want.name);
  if (have.trainable != want.trainable) {
    return fmt::format("unit '{}' is {} where the model's is {} (model.train_architecture)", have.name,
                       have.trainable ? "trained" : "frozen", want.trainable ? "trained" : "frozen");
  }
  const std::size_t common = std::min(have.params.size(), want.params.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (have.params[i] == want.params[i]) continue;
    return fmt::format("unit '{}': tensor {} where the model has {}", have.name, describe(have.params[i]),
                       describe(want.params[i]));
  }
  if (have.params.size() > common)
    return fmt::format("unit '{}': tensor {} that the model does not have", have.name, describe(have.params[common]));
  if (want.params.size() > common)
    return fmt::format("unit '{}' lacks the model's tensor {}", have.name, describe(want.params[common]));
  return {};
}

}  // namespace

/// Open files and, per rank, unit and kind, the shard's bytes.
struct CheckpointReader::Shards {
  std::vector<SafetensorsReader> files;
  std::vector<std::vector<std::array<const std::byte*, 3>>> data;  // [rank][unit][kind]

  Result<void> open_rank(const std::string& path, const Manifest& manifest);
};

Result<void> CheckpointReader::Shards::open_rank(const std::string& path, const Manifest& manifest) {
  auto file = SafetensorsReader::open(path);
  if (!file) return Error{Errc::data_loss, file.error().message()};
  std::vector<std::array<const std::byte*, 3>> units;
  for (const ManifestUnit& unit : manifest.units) {
    std::array<const std::byte*, 3> kinds{};
    for (std::size_t k = 0; k < unit.num_kinds(); ++k) {
      const auto info = file->info(unit.tensor_name(k));
      if (!info) return Error{Errc::data_loss, info.error().message()};
      const std::int64_t n = unit.shard(manifest.world);
      if (info->dtype != "F32" || info->shape != std::vector<std::int64_t>{n}) {
        return damaged(path, fmt::format("tensor '{}' is {} [{}]; the layout needs F32 [{}]", unit.tensor_name(k),
                                         info->dtype, fmt::join(info->shape, ", "), n));
      }
      kinds[k] = info->bytes.data();
    }
    units.push_back(kinds);
  }
  data.push_back(std::move(units));
  files.push_back(std::move(*file));
  return {};
}

CheckpointReader::CheckpointReader(std::string directory, Manifest manifest, std::unique_ptr<Shards> shards)
    : directory_(std::move(directory)), manifest_(std::move(manifest)), shards_(std::move(shards)) {}
CheckpointReader::~CheckpointReader() = default;

Result<std::unique_ptr<CheckpointReader>> CheckpointReader::open(const std::string& directory) {
  TROUPE_ASSIGN(Manifest manifest, read_manifest(directory));
  for (const ManifestFile& file : manifest.files) {
    const std::string path = directory + "/" + file.name;
    std::error_code error;
    const auto size = std::filesystem::file_size(path, error);
    if (error) return damaged(path, fmt::format("{}; the manifest lists it", error.message()));
    if (static_cast<std::int64_t>(size) != file.size) {
      return damaged(path, fmt::format("{} bytes; the manifest says {}", size, file.size));
    }
  }
  auto shards = std::make_unique<Shards>();
  for (std::int64_t rank = 0; rank < manifest.world; ++rank) {
    TROUPE_TRY(shards->open_rank(directory + "/" + Manifest::rank_file(rank, manifest.world), manifest));
  }
  return std::unique_ptr<CheckpointReader>(new CheckpointReader(directory, std::move(manifest), std::move(shards)));
}

Result<void> CheckpointReader::verify_digests() const {
  for (const ManifestFile& file : manifest_.files) {
    const std::string path = directory_ + "/" + file.name;
    std::string digest;
    const auto mapped = std::find_if(shards_->files.begin(), shards_->files.end(),
                                     [&](const SafetensorsReader& f) { return f.path() == path; });
    if (mapped != shards_->files.end()) {
      digest = xxh3_128_hex(mapped->file_bytes());
    } else {
      TROUPE_ASSIGN(const std::string bytes, read_file(path, file.size));
      digest = xxh3_128_hex(std::as_bytes(std::span(bytes)));
    }
    if (digest != file.digest)
      return damaged(path, fmt::format("XXH3-128 is {}; the manifest says {}", digest, file.digest));
  }
  return {};
}

Result<std::string> CheckpointReader::trainer_state() const {
  for (const ManifestFile& file : manifest_.files) {
    if (file.name != kTrainerStateFile) continue;
    const std::string path = directory_ + "/" + file.name;
    auto text = read_file(path, file.size);
    if (!text) return damaged(path, text.error().message());
    return text;
  }
  return std::string();
}

Result<void> CheckpointReader::check_layout(const std::vector<ManifestUnit>& expected) const {
  const auto differs = [&](std::string_view why) {
    return Error{Errc::failed_precondition, fmt::format("checkpoint {} does not fit this model: {}", directory_, why)};
  };
  const std::size_t common = std::min(expected.size(), manifest_.units.size());
  for (std::size_t u = 0; u < common; ++u) {
    const std::string difference = first_difference(manifest_.units[u], expected[u]);
    if (!difference.empty()) return differs(difference);
    if (manifest_.units[u].layout_hash != expected[u].layout_hash) {
      return differs(fmt::format("unit '{}' has layout hash {} where the model has {}", expected[u].name,
                                 to_hex(manifest_.units[u].layout_hash), to_hex(expected[u].layout_hash)));
    }
  }
  if (manifest_.units.size() > common)
    return differs(fmt::format("unit '{}' that the model does not have", manifest_.units[common].name));
  if (expected.size() > common) return differs(fmt::format("it lacks the model's unit '{}'", expected[common].name));
  return {};
}

Result<void> CheckpointReader::read(std::int64_t unit, Kind kind, std::int64_t begin, std::int64_t count,
                                    float* out) const {
  if (unit < 0 || unit >= static_cast<std::int64_t>(manifest_.units.size()) || begin < 0 || count < 0) {
    return Error{Errc::invalid_argument, fmt::format("checkpoint {}: elements [{}, {}) of unit {}; there are {} units",
                                                     directory_, begin, begin + count, unit, manifest_.units.size())};
  }
  const ManifestUnit& layout = manifest_.units[static_cast<std::size_t>(unit)];
  if (static_cast<std::size_t>(kind) >= layout.num_kinds()) {
    std::fill(out, out + count, 0.0F);
    return {};
  }
  const std::int64_t shard = layout.shard(manifest_.world), end = begin + count;
  std::int64_t at = begin;
  while (at < std::min(end, layout.numel)) {
    const std::int64_t rank = at / shard, offset = at % shard;
    const std::int64_t n = std::min({end, layout.numel, (rank + 1) * shard}) - at;
    const std::byte* data =
        shards_->data[static_cast<std::size_t>(rank)][static_cast<std::size_t>(unit)][static_cast<std::size_t>(kind)];
    std::memcpy(out, data + offset * 4, static_cast<std::size_t>(n) * 4);
    out += n;
    at += n;
  }
  std::fill(out, out + (end - at), 0.0F);
  return {};
}

}  // namespace troupe::workers
