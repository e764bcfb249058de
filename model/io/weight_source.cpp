#include "model/io/weight_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <filesystem>
#include <map>
#include <utility>

#include "base/hugging_face.h"
#include "model/io/tensor_source.h"
#include "model/io/weight_index.h"

namespace troupe::model {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIndexEnding = ".safetensors.index.json";
constexpr std::array<const char*, 4> kFolderNames = {"model.safetensors", "model.safetensors.index.json",
                                                     "diffusion_pytorch_model.safetensors",
                                                     "diffusion_pytorch_model.safetensors.index.json"};

/// Several mapped files seen as one.
class MappedWeights final : public WeightSource {
 public:
  /// `path` is what was asked for, `file` the safetensors file or index found there.
  MappedWeights(std::string path, std::string file) : path_(std::move(path)), file_(std::move(file)) {}

  Result<void> read_file() {
    TROUPE_ASSIGN(auto reader, SafetensorsReader::open(file_));
    for (const auto& name : reader.names()) file_of_.emplace(name, 0);
    files_.push_back(std::move(reader));
    list_names();
    return {};
  }
  Result<void> read_index() {
    TROUPE_ASSIGN(const WeightMap map, read_weight_index(file_));
    const auto folder = fs::path(file_).parent_path();
    std::map<std::string, std::size_t> opened;
    for (const auto& [tensor, file] : map) {
      if (opened.count(file) == 0) {
        auto reader = SafetensorsReader::open((folder / file).string());
        if (!reader)
          return Error{Errc::data_loss,
                       reader.error().with(fmt::format("{} names tensor '{}'", file_, tensor)).message()};
        opened.emplace(file, files_.size());
        files_.push_back(std::move(*reader));
      }
      const std::size_t index = opened.at(file);
      if (!files_[index].contains(tensor)) {
        return Error{Errc::data_loss,
                     fmt::format("{} says that tensor '{}' is in {}, which has no such tensor", file_, tensor, file)};
      }
      file_of_.emplace(tensor, index);
    }
    list_names();
    return {};
  }

  const std::string& path() const override { return path_; }
  const std::vector<std::string>& names() const override { return names_; }
  bool contains(std::string_view name) const override { return file_of_.find(name) != file_of_.end(); }
  Result<TensorInfo> info(std::string_view name) const override {
    const auto found = file_of_.find(name);
    if (found == file_of_.end()) {
      return Error{Errc::not_found,
                   fmt::format("{}: there is no tensor '{}' among its {}", path_, name, file_of_.size())};
    }
    return files_[found->second].info(name);
  }

 private:
  void list_names() {
    for (const auto& [name, file] : file_of_) names_.push_back(name);
  }

  std::string path_, file_;
  std::vector<SafetensorsReader> files_;
  std::map<std::string, std::size_t, std::less<>> file_of_;
  std::vector<std::string> names_;
};

/// The one checkpoint that a folder holds.
Result<std::string> file_in_folder(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (const char* name : kFolderNames) {
    if (fs::exists(fs::path(folder) / name, error)) found.emplace_back(name);
  }
  if (found.size() > 1) {
    return Error{Errc::invalid_argument,
                 fmt::format("{} holds {}; name the one that is meant", folder, fmt::join(found, " and "))};
  }
  if (found.empty()) {
    const bool ours = fs::exists(fs::path(folder) / "manifest.json", error) ||
                      fs::exists(fs::path(folder) / "config.resolved.yaml", error);
    return Error{Errc::not_found,
                 fmt::format("{} holds none of {}{}", folder, fmt::join(kFolderNames, ", "),
                             ours ? "; it is a run or checkpoint of Troupe: write its weights out first, with troupe "
                                    "export --format gear or safetensors"
                                  : "")};
  }
  return (fs::path(folder) / found.front()).string();
}

}  // namespace

Result<std::shared_ptr<const WeightSource>> WeightSource::open(const std::string& path_or_repo_id) {
  TROUPE_ASSIGN(const std::string path, find_model_files(path_or_repo_id));
  std::error_code error;
  const bool folder = fs::is_directory(path, error);
  if (!folder && is_pickle_path(path)) {
    return Error{Errc::invalid_argument, fmt::format("{} is a pickle of PyTorch, which is not loaded; convert it once: "
                                                     "troupe convert weights {} --to troupe --out {}",
                                                     path, path, fs::path(path).replace_extension().string())};
  }
  std::string file = path;
  if (folder) {
    TROUPE_ASSIGN(file, file_in_folder(path));
  }
  auto source = std::make_shared<MappedWeights>(path, file);
  TROUPE_TRY(file.ends_with(kIndexEnding) ? source->read_index() : source->read_file());
  return std::shared_ptr<const WeightSource>(std::move(source));
}

}  // namespace troupe::model
