#include "model/wan/weights/conversion_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/durable_file.h"
#include "base/file_io.h"
#include "base/hash.h"

namespace troupe::model {
namespace {

namespace fs = std::filesystem;
constexpr const char* kRecordName = "conversion.json";
constexpr std::size_t kSample = 4096;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

const char* layout_name(WeightLayout layout) {
  return layout == WeightLayout::troupe ? "troupe" : layout == WeightLayout::wan ? "wan" : "dreamzero";
}
const char* dtype_name(WeightDtype dtype) {
  return dtype == WeightDtype::keep ? "keep" : dtype == WeightDtype::fp32 ? "fp32" : "bf16";
}

/// Every name, dtype and shape of the result by file, so that another plan is another request.
std::string plan_fingerprint(const std::vector<PlannedCheckpoint>& plan) {
  Xxh3Stream hash;
  for (const auto& checkpoint : plan) {
    for (const auto& file : checkpoint.files) {
      hash.update(bytes_of(file.path + "\n"));
      for (const auto& t : file.tensors) {
        hash.update(bytes_of(fmt::format("{}\n{}\n{}\n{}\n", t.declared.name, t.declared.dtype,
                                         shape_text(t.declared.shape), t.adapter.a)));
      }
    }
  }
  return hash.hex();
}

}  // namespace

Result<std::string> source_fingerprint(const TensorSource& source) {
  Xxh3Stream hash;
  std::vector<std::byte> gathered;
  for (const auto& name : source.names()) {
    TROUPE_ASSIGN(const auto declared, source.declaration(name));
    TROUPE_ASSIGN(const auto bytes, source.read(name, gathered));
    hash.update(bytes_of(fmt::format("{}\n{}\n{}\n", name, declared.dtype, shape_text(declared.shape))));
    hash.update(bytes.first(std::min(kSample, bytes.size())));
    hash.update(bytes.last(std::min(kSample, bytes.size())));
  }
  return hash.hex();
}

Result<ConversionRecord> begin_record(const TensorSource& source, const std::vector<PlannedCheckpoint>& plan,
                                      const ConvertRequest& request) {
  ConversionRecord record;
  TROUPE_ASSIGN(record.request["source"], source_fingerprint(source));
  record.request["layout"] = layout_name(request.layout);
  record.request["dtype"] = dtype_name(request.dtype);
  record.request["merge_lora"] = request.merge_lora ? fmt::format("{}", request.lora_scale) : "no";
  record.request["shard_bytes"] = std::to_string(request.shard_bytes);
  record.request["plan"] = plan_fingerprint(plan);
  return record;
}

Result<ConversionRecord> read_record(const std::string& folder) {
  const std::string path = (fs::path(folder) / kRecordName).string();
  TROUPE_ASSIGN(const std::string text, read_file(path));
  ConversionRecord record;
  try {
    const auto root = nlohmann::json::parse(text);
    if (root.at("format") != 1) return Error{Errc::data_loss, path + ": this version reads format 1"};
    root.at("request").get_to(record.request);
    root.at("finished").get_to(record.finished);
  } catch (const nlohmann::json::exception& e) {
    return Error{Errc::data_loss, fmt::format("{}: not a record of a conversion: {}", path, e.what())};
  }
  return record;
}

Result<void> write_record(const std::string& folder, const ConversionRecord& record) {
  const nlohmann::json root = {{"format", 1}, {"request", record.request}, {"finished", record.finished}};
  return write_file_durably((fs::path(folder) / kRecordName).string(), root.dump(2) + "\n");
}

Result<ConversionRecord> resume_record(const std::string& folder, const ConversionRecord& fresh,
                                       const std::vector<PlannedCheckpoint>& plan) {
  auto found = read_record(folder);
  if (found) {
    for (const auto& [key, value] : fresh.request) {
      const auto there = found->request.find(key);
      if (there != found->request.end() && there->second == value) continue;
      return Error{Errc::failed_precondition,
                   fmt::format("{} holds another conversion: its {} is {}, this one's {}; choose another --out", folder,
                               key, there == found->request.end() ? "not given" : there->second, value)};
    }
    return found;
  }
  if (found.error().code() != Errc::not_found) return found.error();
  std::error_code error;
  for (const auto& checkpoint : plan) {
    for (const auto& file : checkpoint.files) {
      if (fs::exists(fs::path(folder) / file.path, error)) {
        return Error{Errc::failed_precondition,
                     fmt::format("{}/{} exists and no conversion wrote it; choose another --out", folder, file.path)};
      }
    }
  }
  return fresh;
}

}  // namespace troupe::model
