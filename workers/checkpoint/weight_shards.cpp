#include "workers/checkpoint/weight_shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/durable_file.h"
#include "base/file_io.h"
#include "kernels/element.h"
#include "model/io/safetensors.h"

namespace troupe::workers {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kChunkElements = std::int64_t{1} << 18;  // 1 MiB
constexpr const char* kIndex = "model.safetensors.index.json";

/// One write of a list of tensors.
class ShardWriter {
 public:
  ShardWriter(const std::string& folder, const std::vector<ShardTensor>& tensors, const ReadShardTensor& read,
              bool bf16, const Progress& progress)
      : folder_(folder), tensors_(tensors), read_(read), bf16_(bf16), progress_(progress) {}

  Result<void> write_all(std::int64_t max_shard_bytes);
  ExportSummary& summary() { return summary_; }

 private:
  std::int64_t bytes_of(std::size_t index) const { return tensors_[index].numel() * (bf16_ ? 2 : 4); }
  std::vector<std::vector<std::size_t>> split(std::int64_t max_bytes) const;
  Result<void> write_shard(const std::vector<std::size_t>& shard, const std::string& path);
  Result<void> copy_tensor(std::size_t index, SafetensorsWriter& out);

  const std::string& folder_;
  const std::vector<ShardTensor>& tensors_;
  const ReadShardTensor& read_;
  bool bf16_;
  const Progress& progress_;
  std::int64_t written_ = 0;
  ExportSummary summary_;
};

/// Runs of tensors that fit in a shard; a tensor larger than a shard gets its own.
std::vector<std::vector<std::size_t>> ShardWriter::split(std::int64_t max_bytes) const {
  std::vector<std::vector<std::size_t>> shards(1);
  std::int64_t filled = 0;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (!shards.back().empty() && filled + bytes_of(i) > max_bytes) {
      shards.emplace_back();
      filled = 0;
    }
    shards.back().push_back(i);
    filled += bytes_of(i);
  }
  return shards;
}

Result<void> ShardWriter::copy_tensor(std::size_t index, SafetensorsWriter& out) {
  const std::int64_t numel = tensors_[index].numel();
  std::vector<float> values;
  std::vector<kernels::simd::Bf16> rounded;
  for (std::int64_t done = 0; done < numel;) {
    const std::int64_t n = std::min(kChunkElements, numel - done);
    values.resize(static_cast<std::size_t>(n));
    TROUPE_TRY(read_(index, done, n, values.data()));
    if (bf16_) {
      rounded.resize(values.size());
      std::transform(values.begin(), values.end(), rounded.begin(), kernels::simd::to_bf16);
    }
    TROUPE_TRY(out.append(bf16_ ? std::as_bytes(std::span(rounded)) : std::as_bytes(std::span(values))));
    done += n;
    written_ += n * (bf16_ ? 2 : 4);
    if (progress_) progress_(written_, summary_.bytes);
  }
  return {};
}

Result<void> ShardWriter::write_shard(const std::vector<std::size_t>& shard, const std::string& path) {
  const std::string temporary = path + ".tmp";
  std::vector<TensorDeclaration> declared;
  for (const std::size_t i : shard) declared.push_back({tensors_[i].name, bf16_ ? "BF16" : "F32", tensors_[i].shape});
  TROUPE_ASSIGN(auto out, SafetensorsWriter::create(temporary, declared, {{"format", "pt"}}));
  for (const std::size_t i : shard) TROUPE_TRY(copy_tensor(i, out));
  TROUPE_TRY(out.finish());
  TROUPE_TRY(out.sync());
  return commit_file(temporary, path);
}

Result<void> ShardWriter::write_all(std::int64_t max_shard_bytes) {
  const auto shards = split(max_shard_bytes);
  nlohmann::json weight_map = nlohmann::json::object();
  summary_.tensors = static_cast<std::int64_t>(tensors_.size());
  for (const ShardTensor& tensor : tensors_) summary_.parameters += tensor.numel();
  summary_.bytes = summary_.parameters * (bf16_ ? 2 : 4);
  for (std::size_t s = 0; s < shards.size(); ++s) {
    const std::string name = shards.size() == 1
                                 ? std::string("model.safetensors")
                                 : fmt::format("model-{:05d}-of-{:05d}.safetensors", s + 1, shards.size());
    summary_.files.push_back(name);
    TROUPE_TRY(write_shard(shards[s], folder_ + "/" + name));
    for (const std::size_t i : shards[s]) weight_map[tensors_[i].name] = name;
  }
  if (shards.size() > 1) {
    const nlohmann::json index = {{"metadata", {{"total_size", summary_.bytes}}}, {"weight_map", weight_map}};
    TROUPE_TRY(write_file_durably(folder_ + "/" + kIndex, index.dump(2) + "\n"));
    summary_.files.emplace_back(kIndex);
  }
  return {};
}

Result<void> make_export_folder(const std::string& folder) {
  TROUPE_TRY(make_folders(folder));
  std::error_code error;
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator(); it.increment(error)) {
    const std::string name = it->path().filename();
    if (!name.starts_with("model") || (!name.ends_with(".safetensors") && name != kIndex)) continue;
    return Error{Errc::failed_precondition,
                 fmt::format("{} already holds an export ({}); remove it or choose another folder", folder, name)};
  }
  if (error) return file_error(folder, "cannot be listed", error.value());
  return {};
}

}  // namespace

Result<ExportSummary> write_weight_shards(const std::string& folder, const std::vector<ShardTensor>& tensors,
                                          const ReadShardTensor& read, bool bf16, std::int64_t max_shard_bytes,
                                          const Progress& progress) {
  for (std::size_t i = 1; i < tensors.size(); ++i) {
    if (tensors[i - 1].name < tensors[i].name) continue;
    return Error{Errc::invalid_argument, fmt::format("{}: tensor '{}' stands after '{}'; wanted each once, sorted",
                                                     folder, tensors[i].name, tensors[i - 1].name)};
  }
  TROUPE_TRY(make_export_folder(folder));
  ShardWriter writer(folder, tensors, read, bf16, progress);
  auto written = writer.write_all(max_shard_bytes);
  if (written) return std::move(writer.summary());
  // Nothing was here before, so everything that has one of these names is ours.
  for (const std::string& name : writer.summary().files) {
    std::error_code error;
    fs::remove(folder + "/" + name, error);
    fs::remove(folder + "/" + name + ".tmp", error);
  }
  return written.error().with(fmt::format("export to {}", folder));
}

}  // namespace troupe::workers
