#include "model/io/tensor_source.h"

#include <filesystem>
#include <utility>

#include "base/hugging_face.h"
#include "model/io/pth_reader.h"
#include "model/io/weight_source.h"

namespace troupe::model {
namespace {

class SafetensorsSource final : public TensorSource {
 public:
  explicit SafetensorsSource(std::shared_ptr<const WeightSource> source) : source_(std::move(source)) {}

  const std::string& path() const override { return source_->path(); }
  const std::vector<std::string>& names() const override { return source_->names(); }
  Result<TensorDeclaration> declaration(const std::string& name) const override {
    TROUPE_ASSIGN(const TensorInfo info, source_->info(name));
    return TensorDeclaration{name, info.dtype, info.shape};
  }
  Result<std::span<const std::byte>> read(const std::string& name, std::vector<std::byte>&) const override {
    TROUPE_ASSIGN(const TensorInfo info, source_->info(name));
    return info.bytes;
  }

 private:
  std::shared_ptr<const WeightSource> source_;
};

class PickleSource final : public TensorSource {
 public:
  explicit PickleSource(PthReader reader) : reader_(std::move(reader)) {}

  const std::string& path() const override { return reader_.path(); }
  const std::vector<std::string>& names() const override { return reader_.names(); }
  Result<TensorDeclaration> declaration(const std::string& name) const override { return reader_.declaration(name); }
  Result<std::span<const std::byte>> read(const std::string& name, std::vector<std::byte>& gathered) const override {
    return reader_.read(name, gathered);
  }

 private:
  PthReader reader_;
};

}  // namespace

bool is_pickle_path(const std::string& path) {
  const auto ending = std::filesystem::path(path).extension();
  return ending == ".pth" || ending == ".pt" || ending == ".bin" || ending == ".ckpt";
}

Result<std::shared_ptr<const TensorSource>> TensorSource::open(const std::string& path_or_repo_id) {
  TROUPE_ASSIGN(const std::string path, find_model_files(path_or_repo_id));
  std::error_code error;
  if (is_pickle_path(path) && !std::filesystem::is_directory(path, error)) {
    TROUPE_ASSIGN(auto reader, PthReader::open(path));
    return std::shared_ptr<const TensorSource>(std::make_shared<PickleSource>(std::move(reader)));
  }
  TROUPE_ASSIGN(auto source, WeightSource::open(path));
  return std::shared_ptr<const TensorSource>(std::make_shared<SafetensorsSource>(std::move(source)));
}

}  // namespace troupe::model
