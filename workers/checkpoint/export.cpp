#include "workers/checkpoint/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "model/io/safetensors.h"
#include "workers/checkpoint/files.h"
#include "workers/checkpoint/reader.h"

namespace troupe {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kChunkElements = std::int64_t{1} << 18;  // 1 MiB
constexpr const char* kIndex = "model.safetensors.index.json";

struct Item {
  std::int64_t unit = 0;
  const ManifestParam* param = nullptr;
  std::int64_t bytes() const { return param->numel * 4; }
};

std::vector<Item> sorted_items(const Manifest& manifest) {
  std::vector<Item> items;
  for (std::size_t u = 0; u < manifest.units.size(); ++u) {
    for (const ManifestParam& p : manifest.units[u].params) items.push_back({static_cast<std::int64_t>(u), &p});
  }
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.param->name < b.param->name; });
  return items;
}

// Runs of items that fit in a shard; an item larger than a shard gets its own.
std::vector<std::vector<Item>> split(const std::vector<Item>& items, std::int64_t max_bytes) {
  std::vector<std::vector<Item>> shards(1);
  std::int64_t filled = 0;
  for (const Item& item : items) {
    if (!shards.back().empty() && filled + item.bytes() > max_bytes) {
      shards.emplace_back();
      filled = 0;
    }
    shards.back().push_back(item);
    filled += item.bytes();
  }
  return shards;
}

Result<void> make_folder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return file_error(folder, "cannot be created", error.value());
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator(); it.increment(error)) {
    const std::string name = it->path().filename();
    if (!name.starts_with("model") || (!name.ends_with(".safetensors") && name != kIndex)) continue;
    return Error{Errc::failed_precondition,
                 fmt::format("{} already holds an export ({}); remove it or choose another folder", folder, name)};
  }
  if (error) return file_error(folder, "cannot be listed", error.value());
  return {};
}

Result<void> copy_tensor(const CheckpointReader& reader, const Item& item, std::vector<float>& buffer,
                         SafetensorsWriter& out) {
  for (std::int64_t done = 0; done < item.param->numel;) {
    const std::int64_t n = std::min(kChunkElements, item.param->numel - done);
    buffer.resize(static_cast<std::size_t>(n));
    TROUPE_TRY(reader.read(item.unit, CheckpointReader::Kind::master, item.param->offset + done, n, buffer.data()));
    TROUPE_TRY(out.append(std::as_bytes(std::span(buffer))));
    done += n;
  }
  return {};
}

Result<void> write_shard(const CheckpointReader& reader, const std::vector<Item>& items, const std::string& path) {
  const std::string temporary = path + ".tmp";
  std::vector<TensorDeclaration> tensors;
  for (const Item& item : items) tensors.push_back({item.param->name, "F32", item.param->shape});
  TROUPE_ASSIGN(auto out, SafetensorsWriter::create(temporary, tensors, {{"format", "pt"}}));
  std::vector<float> buffer;
  for (const Item& item : items) TROUPE_TRY(copy_tensor(reader, item, buffer, out));
  TROUPE_TRY(out.finish());
  TROUPE_TRY(out.sync());
  if (std::rename(temporary.c_str(), path.c_str()) != 0) return file_error(path, "cannot be renamed into place", errno);
  return {};
}

Result<void> write_all(const CheckpointReader& reader, const std::vector<std::vector<Item>>& shards,
                       const std::string& folder, ExportSummary& summary) {
  nlohmann::json weight_map = nlohmann::json::object();
  for (std::size_t s = 0; s < shards.size(); ++s) {
    const std::string name = shards.size() == 1
                                 ? std::string("model.safetensors")
                                 : fmt::format("model-{:05d}-of-{:05d}.safetensors", s + 1, shards.size());
    summary.files.push_back(name);
    TROUPE_TRY(write_shard(reader, shards[s], folder + "/" + name));
    for (const Item& item : shards[s]) weight_map[item.param->name] = name;
  }
  if (shards.size() > 1) {
    const nlohmann::json index = {{"metadata", {{"total_size", summary.bytes}}}, {"weight_map", weight_map}};
    TROUPE_TRY(write_file_durably(folder + "/" + kIndex, index.dump(2) + "\n"));
    summary.files.emplace_back(kIndex);
  }
  return sync_directory(folder);
}

}  // namespace

Result<ExportSummary> export_safetensors(const std::string& checkpoint, const std::string& folder,
                                         std::int64_t max_shard_bytes) {
  TROUPE_ASSIGN(const auto reader, CheckpointReader::open(checkpoint));
  TROUPE_TRY(make_folder(folder));
  const auto items = sorted_items(reader->manifest());
  ExportSummary summary;
  summary.tensors = static_cast<std::int64_t>(items.size());
  for (const Item& item : items) {
    summary.parameters += item.param->numel;
    summary.bytes += item.bytes();
  }
  auto written = write_all(*reader, split(items, max_shard_bytes), folder, summary);
  if (written) return summary;
  // Nothing was here before, so everything that has one of these names is ours.
  for (const std::string& name : summary.files) {
    std::error_code error;
    fs::remove(folder + "/" + name, error);
    fs::remove(folder + "/" + name + ".tmp", error);
  }
  return written.error().with(fmt::format("export to {}", folder));
}

}  // namespace troupe
