#include "workers/checkpoint/frozen_base.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "base/durable_file.h"
#include "base/fault.h"
#include "base/file_io.h"
#include "base/hash.h"
#include "base/log.h"
#include "configs/number_fields.h"
#include "workers/checkpoint/manifest_file_json.h"

namespace troupe::workers {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kPrefix = "base_", kUnfinished = "base.tmp-";
constexpr const char* kManifest = "/manifest.json";

/// What manifest.json of a base says.
struct BaseManifest {
  static constexpr std::int64_t kFormat = 1;

  /// Of the group that wrote it, and its number of ranks.
  std::uint64_t fence = 0;
  std::int64_t world = 1;
  std::string dtype;
  std::vector<ManifestFile> files;
};

std::string digest_of(const std::string& text) { return xxh3_128_hex(std::as_bytes(std::span(text))); }

std::string text_of(const BaseManifest& base) {
  json files = json::array();
  for (const ManifestFile& file : base.files) files.push_back(file_to_json(file));
  const json j = {{"dtype", base.dtype},
                  {"fence", to_hex(base.fence)},
                  {"files", files},
                  {"format", BaseManifest::kFormat},
                  {"world", base.world}};
  return j.dump(2) + "\n";
}

Result<BaseManifest> base_from(const std::string& text, const std::string& path) {
  try {
    const json j = json::parse(text);
    if (j.at("format") != BaseManifest::kFormat) throw std::runtime_error("another format");
    BaseManifest base{
        .fence = hex_field(j.at("fence")), .world = whole_field(j.at("world")), .dtype = j.at("dtype"), .files = {}};
    if (base.world < 1 || base.world > 65'536) throw std::runtime_error(fmt::format("world {}", base.world));
    if (base.dtype != "F32" && base.dtype != "BF16") throw std::runtime_error(fmt::format("dtype '{}'", base.dtype));
    for (const json& file : j.at("files")) base.files.push_back(file_from_json(file));
    return base;
  } catch (const std::exception& e) {
    return Error{Errc::data_loss, fmt::format("{}: not the manifest of a base: {}", path, e.what())};
  }
}

/// Of a closed base, compared with its name.
Result<BaseManifest> read_base(const std::string& folder, const std::string& digest) {
  const std::string path = folder + kManifest;
  TROUPE_ASSIGN(const std::string text, read_file(path));
  if (digest_of(text) != digest) return Error{Errc::data_loss, fmt::format("{}: it was changed", path)};
  return base_from(text, path);
}

/// Names in a folder that begin alike.
std::vector<std::string> names_with(const std::string& folder, std::string_view prefix) {
  std::vector<std::string> names;
  std::error_code error;
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator(); it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with(prefix)) names.push_back(name);
  }
  return names;
}

/// The entry of a file that a rank has written and synced.
Result<ManifestFile> written_file(const std::string& folder, const std::string& name) {
  ManifestFile file{.name = name, .has_chunks = true};
  TROUPE_ASSIGN(const std::string list, read_file(folder + "/" + file.list_name()));
  std::error_code error;
  file.size = static_cast<std::int64_t>(fs::file_size(folder + "/" + name, error));
  if (error) return file_error(folder + "/" + name, "cannot be read", error.value());
  file.digest = digest_of(list);
  return file;
}

Result<BaseManifest> written_base(const std::string& folder, const Manifest& manifest) {
  BaseManifest base{.fence = manifest.fence, .world = manifest.world, .dtype = {}, .files = {}};
  for (std::int64_t rank = 0; rank < base.world; ++rank) {
    TROUPE_ASSIGN(ManifestFile file, written_file(folder, Manifest::rank_file(rank, base.world)));
    base.files.push_back(std::move(file));
  }
  TROUPE_TRY(check_sizes(folder, base.files));
  TROUPE_ASSIGN(const auto first, SafetensorsReader::open(folder + "/" + base.files.front().name));
  TROUPE_ASSIGN(const TensorInfo any, first.info(first.names().front()));
  base.dtype = any.dtype;
  TROUPE_TRY(ShardFiles::open(folder, base_layout(manifest.units, base.world, base.dtype), base.files));
  return base;
}

Result<std::string> close_written(const std::string& folder, const std::string& unfinished, const Manifest& manifest) {
  TROUPE_ASSIGN(const BaseManifest base, written_base(unfinished, manifest));
  const std::string text = text_of(base), digest = digest_of(text);
  TROUPE_TRY(fault_point("checkpoint.manifest", unfinished + kManifest));
  TROUPE_TRY(write_file_durably(unfinished + kManifest, text));
  TROUPE_TRY(commit_file(unfinished, fmt::format("{}/{}{}", folder, kPrefix, digest)));
  return digest;
}

/// The digests that checkpoints name, those being written and set aside included; nothing where one does not read.
std::optional<std::set<std::string>> named_bases(const std::string& folder) {
  std::set<std::string> named;
  for (const std::string& name : names_with(folder, "step_")) {
    const auto manifest = read_manifest(folder + "/" + name);
    if (manifest) {
      named.insert(manifest->base);
    } else if (manifest.error().code() != Errc::not_found) {
      log::warn("no base is removed: {}", manifest.error().message());
      return std::nullopt;
    }
  }
  return named;
}

void remove_folder(const std::string& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  if (error) log::warn("{}: cannot be removed: {}", folder, error.message());
}

}  // namespace

std::string base_tmp_folder(const std::string& folder, std::uint64_t fence) {
  return fmt::format("{}/{}{}", folder, kUnfinished, to_hex(fence));
}

Result<std::string> base_folder(const std::string& checkpoint, const Manifest& manifest) {
  std::error_code error;
  // `checkpoint` may be a link such as latest
  const fs::path real = fs::canonical(checkpoint, error);
  if (error) return file_error(checkpoint, "cannot be resolved", error.value());
  return (real.parent_path() / (std::string(kPrefix) + manifest.base)).string();
}

ShardFiles::Layout base_layout(const std::vector<ManifestUnit>& units, std::int64_t world, const std::string& dtype) {
  ShardFiles::Layout layout{.world = world, .units = {}};
  for (const ManifestUnit& unit : units) {
    auto& tensors = layout.units.emplace_back();
    tensors.shard = unit.shard(world);
    if (unit.in_base) tensors.tensors.push_back({unit.tensor_name(0), dtype});
  }
  return layout;
}

Result<std::optional<std::string>> close_base(const std::string& folder, const Manifest& manifest) {
  const std::string unfinished = base_tmp_folder(folder, manifest.fence);
  std::error_code error;
  if (fs::exists(unfinished, error)) {
    TROUPE_ASSIGN(std::string digest, close_written(folder, unfinished, manifest));
    return std::optional<std::string>(std::move(digest));
  }
  for (const std::string& name : names_with(folder, kPrefix)) {
    std::string digest = name.substr(kPrefix.size());
    const auto base = read_base(folder + "/" + name, digest);
    if (base && base->fence == manifest.fence) return std::optional<std::string>(std::move(digest));
  }
  return std::optional<std::string>();
}

void prune_bases(const std::string& folder, std::uint64_t current_fence) {
  for (const std::string& name : names_with(folder, kUnfinished)) {
    const auto fence = from_hex(name.substr(kUnfinished.size()));
    if (fence && *fence < current_fence) remove_folder(folder + "/" + name);
  }
  const auto bases = names_with(folder, kPrefix);
  if (bases.empty()) return;
  const auto named = named_bases(folder);
  if (!named) return;
  for (const std::string& name : bases) {
    const std::string digest = name.substr(kPrefix.size());
    if (named->count(digest) != 0) continue;
    const auto base = read_base(folder + "/" + name, digest);
    if (base && base->fence < current_fence) remove_folder(folder + "/" + name);
  }
}

FrozenBase::FrozenBase(std::string folder, ShardFiles shards)
    : folder_(std::move(folder)), shards_(std::move(shards)) {}

namespace {

/// An older checkpoint needs the same base, so nobody shall go back to one.
Error base_error(const std::string& folder, const Error& cause) {
  return {Errc::failed_precondition,
          fmt::format("the frozen base {} is {}: {}; every checkpoint of its run needs it, so put it back from a copy",
                      folder, cause.code() == Errc::not_found ? "not there" : "damaged", cause.message())};
}

}  // namespace

Result<FrozenBase> FrozenBase::open(const std::string& checkpoint, const Manifest& manifest) {
  TROUPE_ASSIGN(const std::string folder, base_folder(checkpoint, manifest));
  const auto open_files = [&]() -> Result<ShardFiles> {
    TROUPE_ASSIGN(const BaseManifest base, read_base(folder, manifest.base));
    TROUPE_TRY(check_sizes(folder, base.files));
    return ShardFiles::open(folder, base_layout(manifest.units, base.world, base.dtype), base.files);
  };
  auto shards = open_files();
  if (!shards) return base_error(folder, shards.error());
  return FrozenBase(folder, std::move(*shards));
}

Result<void> FrozenBase::read(std::size_t unit, std::int64_t begin, std::int64_t count, float* out) const {
  if (const auto read = shards_.read(unit, 0, begin, count, out); !read) return base_error(folder_, read.error());
  return {};
}

Result<void> FrozenBase::check_all() const {
  if (const auto checked = shards_.check_all(); !checked) return base_error(folder_, checked.error());
  return {};
}

}  // namespace troupe::workers
