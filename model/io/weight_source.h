#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/io/safetensors.h"

namespace troupe::model {

/// Named tensors of a checkpoint, whether it is one safetensors file or several with an index {"metadata":
/// {"total_size": n}, "weight_map": {tensor: file}}. Files are mapped read-only, so opening costs no memory. Immutable:
/// any number of threads may read.
class WeightSource {
 public:
  /// A .safetensors file, a .safetensors.index.json, or a folder with one of model.safetensors,
  /// model.safetensors.index.json, diffusion_pytorch_model.safetensors, diffusion_pytorch_model.safetensors.index.json;
  /// or any of these as owner/name/PATH in the Hugging Face cache (find_model_files).
  /// Errors: not_found; invalid_argument for a folder with several of them and for .pth, .pt and .bin files (the
  /// message prints the `troupe convert weights` line); data_loss for a bad file, or an index that names a missing
  /// file, a tensor that its file lacks, or a file outside the folder.
  /// Headers of all files are read and checked here, values never.
  static Result<std::shared_ptr<const WeightSource>> open(const std::string& path_or_repo_id);
  virtual ~WeightSource() = default;

  /// The path that was opened.
  virtual const std::string& path() const = 0;
  /// Names of all files' tensors, sorted. With an index, those that it lists: other tensors of its files are not seen.
  virtual const std::vector<std::string>& names() const = 0;
  virtual bool contains(std::string_view name) const = 0;
  /// Dtype, shape, the bytes in the mapping and the file they lie in. Bytes stay valid while the source lives. Errors:
  /// not_found, naming the path and the tensor.
  virtual Result<TensorInfo> info(std::string_view name) const = 0;
};

}  // namespace troupe::model
