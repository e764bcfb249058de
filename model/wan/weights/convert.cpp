#include "model/wan/weights/convert.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <filesystem>

#include "base/durable_file.h"
#include "base/fault.h"
#include "base/file_io.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mapped_file.h"
#include "model/io/weight_index.h"
#include "model/wan/weights/conversion_record.h"
#include "model/wan/weights/convert_plan.h"
#include "model/wan/weights/convert_values.h"

namespace troupe::model {
namespace {

namespace fs = std::filesystem;

/// True when the record's digest is that of the file as it is.
bool is_finished(const std::string& path, const std::string& relative, const ConversionRecord& record) {
  const auto digest = record.finished.find(relative);
  if (digest == record.finished.end()) return false;
  const auto file = MappedFile::open(path, 8);
  if (file && xxh3_128_hex(file->bytes()) == digest->second) return true;
  log::warn("convert: {} is not as it was written; it is written again", path);
  return false;
}

/// Counts the tensors of a whole conversion.
struct TensorCount {
  const Progress& progress;
  std::int64_t done = 0, of = 0;

  void add(std::size_t tensors) {
    done += static_cast<std::int64_t>(tensors);
    if (progress) progress(done, of);
  }
};

/// Writes one file and returns its digest.
Result<std::string> write_file(const TensorSource& source, const PlannedFile& file, const std::string& path,
                               double lora_scale, TensorCount& count) {
  std::vector<TensorDeclaration> declared;
  for (const auto& tensor : file.tensors) declared.push_back(tensor.declared);
  const std::string temporary = path + ".tmp";
  TROUPE_ASSIGN(auto writer, SafetensorsWriter::create(temporary, declared, {{"format", "pt"}}));
  for (const auto& tensor : file.tensors) {
    TROUPE_TRY(fault_point("convert.tensor", path + " " + tensor.declared.name));
    TROUPE_TRY(write_values(source, tensor, lora_scale, writer));
    count.add(1);
  }
  TROUPE_TRY(writer.finish());
  TROUPE_TRY(writer.sync());
  TROUPE_TRY(commit_file(temporary, path));
  TROUPE_TRY(fault_point("convert.file", path));
  return writer.digest();
}

Result<void> write_index(const PlannedCheckpoint& checkpoint, const std::string& folder) {
  WeightMap map;
  std::int64_t bytes = 0;
  for (const auto& file : checkpoint.files) {
    for (const auto& tensor : file.tensors) {
      map[tensor.declared.name] = fs::path(file.path).filename().string();
      bytes += tensor_bytes(tensor.declared);
    }
  }
  return write_file_durably((fs::path(folder) / checkpoint.index_path).string(), weight_index_text(map, bytes));
}

Result<void> write_checkpoint(const TensorSource& source, const PlannedCheckpoint& checkpoint,
                              const ConvertRequest& request, ConversionRecord& record,
                              std::vector<ConvertedFile>& written, TensorCount& count) {
  for (const auto& file : checkpoint.files) {
    const auto path = fs::path(request.out) / file.path;
    TROUPE_TRY(make_folders(path.parent_path().string()));
    const bool reused = is_finished(path.string(), file.path, record);
    if (!reused) {
      TROUPE_ASSIGN(record.finished[file.path], write_file(source, file, path.string(), request.lora_scale, count));
      TROUPE_TRY(write_record(request.out, record));
    }
    if (reused) count.add(file.tensors.size());
    std::error_code error;
    written.push_back({file.path, static_cast<std::int64_t>(fs::file_size(path, error)), reused});
  }
  if (checkpoint.index_path.empty()) return {};
  return write_index(checkpoint, request.out);
}

}  // namespace

Result<std::vector<ConvertedFile>> convert_weights(const TensorSource& source, const WeightsReport& report,
                                                   const ConvertRequest& request, const Progress& progress) {
  if (request.shard_bytes < 1) return Error{Errc::invalid_argument, "--shard-size must be at least 1 byte"};
  TROUPE_ASSIGN(const auto plan, plan_conversion(source, report, request));
  TROUPE_ASSIGN(const auto fresh, begin_record(source, plan, request));
  TROUPE_TRY(make_folders(request.out));
  TROUPE_ASSIGN(auto record, resume_record(request.out, fresh, plan));
  // Before the first file, so that another conversion into this folder is refused from now on.
  TROUPE_TRY(write_record(request.out, record));
  TensorCount count{.progress = progress};
  for (const auto& checkpoint : plan) {
    for (const auto& file : checkpoint.files) count.of += static_cast<std::int64_t>(file.tensors.size());
  }
  std::vector<ConvertedFile> written;
  for (const auto& checkpoint : plan) {
    try {
      TROUPE_TRY(write_checkpoint(source, checkpoint, request, record, written, count));
    } catch (const c10::Error& e) {
      return Error{Errc::internal, fmt::format("{}: {}", request.out, e.what_without_backtrace())};
    }
  }
  return written;
}

}  // namespace troupe::model
