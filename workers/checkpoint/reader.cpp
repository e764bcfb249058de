#include "workers/checkpoint/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/hash.h"

namespace troupe::workers {

namespace {

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
  for (const ManifestParam& param : have.params) {
    const ManifestParam* wanted = want.find(param.name);
    if (wanted == nullptr)
      return fmt::format("unit '{}': tensor {} that the model does not have", have.name, describe(param));
    if (param.shape != wanted->shape || (have.in_base && param.offset != wanted->offset))
      return fmt::format("unit '{}': tensor {} where the model has {}", have.name, describe(param), describe(*wanted));
  }
  for (const ManifestParam& param : want.params) {
    if (have.find(param.name) == nullptr)
      return fmt::format("unit '{}' lacks the model's tensor {}", have.name, describe(param));
  }
  return {};
}

}  // namespace

CheckpointReader::CheckpointReader(std::string directory, Manifest manifest, ShardFiles shards,
                                   std::optional<FrozenBase> base)
    : directory_(std::move(directory)),
      manifest_(std::move(manifest)),
      shards_(std::move(shards)),
      base_(std::move(base)) {}

Result<std::unique_ptr<CheckpointReader>> CheckpointReader::open(const std::string& directory) {
  TROUPE_ASSIGN(Manifest manifest, read_manifest(directory));
  TROUPE_TRY(check_sizes(directory, manifest.files));
  ShardFiles::Layout layout{.world = manifest.world, .units = {}};
  for (const ManifestUnit& unit : manifest.units) {
    auto& tensors = layout.units.emplace_back();
    tensors.shard = unit.shard(manifest.world);
    for (std::size_t k = 0; k < unit.num_kinds(); ++k)
      tensors.tensors.push_back({unit.tensor_name(k), unit.tensor_dtype(k)});
  }
  TROUPE_ASSIGN(ShardFiles shards, ShardFiles::open(directory, std::move(layout), manifest.files));
  std::optional<FrozenBase> base;
  if (!manifest.base.empty()) {
    auto opened = FrozenBase::open(directory, manifest);
    if (!opened) return opened.error().with(directory);
    base = std::move(*opened);
  }
  return std::unique_ptr<CheckpointReader>(
      new CheckpointReader(directory, std::move(manifest), std::move(shards), std::move(base)));
}

Result<void> CheckpointReader::verify_digests() const {
  TROUPE_TRY(shards_.check_all());
  TROUPE_TRY(verify_small_files());
  return base_ ? base_->check_all() : Result<void>();
}

Result<void> CheckpointReader::verify_small_files() const {
  for (const ManifestFile& file : manifest_.files) {
    if (!file.has_chunks && !file.name.starts_with("rank-")) TROUPE_TRY(read_small_file(directory_, file));
  }
  return {};
}

Result<CheckpointReader::Kind> CheckpointReader::kind_of(WeightSet set) const {
  if (set == WeightSet::model) return Kind::master;
  if (manifest_.has_average()) return Kind::ema;
  return Error{Errc::failed_precondition,
               fmt::format("checkpoint {} has no average of its weights; jobs with ema.decay, such as 0.9999, keep one",
                           directory_)};
}

Result<std::string> CheckpointReader::attachment(std::string_view name) const {
  for (const ManifestFile& file : manifest_.files) {
    if (file.name == name) return read_small_file(directory_, file);
  }
  return std::string();
}

std::int64_t CheckpointReader::checked_bytes() const {
  return shards_.checked_bytes() + (base_ ? base_->checked_bytes() : 0);
}

Result<void> CheckpointReader::check_layout(const std::vector<ManifestUnit>& expected) const {
  const auto differs = [&](std::string_view why) {
    return Error{Errc::failed_precondition, fmt::format("checkpoint {} does not fit this model: {}", directory_, why)};
  };
  const std::size_t common = std::min(expected.size(), manifest_.units.size());
  for (std::size_t u = 0; u < common; ++u) {
    const std::string difference = first_difference(manifest_.units[u], expected[u]);
    if (!difference.empty()) return differs(difference);
  }
  if (manifest_.units.size() > common)
    return differs(fmt::format("unit '{}' that the model does not have", manifest_.units[common].name));
  if (expected.size() > common) return differs(fmt::format("it lacks the model's unit '{}'", expected[common].name));
  return {};
}

Result<void> CheckpointReader::read(std::int64_t unit, Kind wanted, std::int64_t begin, std::int64_t count,
                                    float* out) const {
  if (unit < 0 || unit >= static_cast<std::int64_t>(manifest_.units.size()) || begin < 0 || count < 0) {
    return Error{Errc::invalid_argument, fmt::format("checkpoint {}: elements [{}, {}) of unit {}; there are {} units",
                                                     directory_, begin, begin + count, unit, manifest_.units.size())};
  }
  const auto index = static_cast<std::size_t>(unit);
  const ManifestUnit& layout = manifest_.units[index];
  // what is never trained is its own average
  const Kind kind = wanted == Kind::ema && !layout.has_average ? Kind::master : wanted;
  const bool is_stored = layout.in_base ? kind == Kind::master : static_cast<std::size_t>(kind) < layout.num_kinds();
  const std::int64_t stored = is_stored ? std::clamp<std::int64_t>(layout.numel - begin, 0, count) : 0;
  if (layout.in_base) {
    TROUPE_TRY(base_->read(index, begin, stored, out));
  } else {
    TROUPE_TRY(shards_.read(index, static_cast<std::size_t>(kind), begin, stored, out));
  }
  std::fill(out + stored, out + count, 0.0F);
  return {};
}

}  // namespace troupe::workers
