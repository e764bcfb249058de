#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/io/safetensors.h"

namespace troupe::model {

/// Named tensors of any container that can be converted (`troupe convert weights`, `troupe doctor --model`): a
/// safetensors file, folder or index, or a .pth file. Mapped, so that opening costs no memory. Immutable: any number of
/// threads may read.
class TensorSource {
 public:
  /// As WeightSource::open, and for .pth, .pt, .bin and .ckpt, here or in the Hugging Face cache, as PthReader::open.
  static Result<std::shared_ptr<const TensorSource>> open(const std::string& path_or_repo_id);
  virtual ~TensorSource() = default;

  /// The path that was opened.
  virtual const std::string& path() const = 0;
  /// Sorted; valid while the source lives.
  virtual const std::vector<std::string>& names() const = 0;
  /// Name, dtype and shape. Errors: not_found.
  virtual Result<TensorDeclaration> declaration(const std::string& name) const = 0;
  /// Row-major values: in the mapping (valid while the source lives), or in `gathered`, which is overwritten. Possibly
  /// unaligned. Errors: not_found.
  virtual Result<std::span<const std::byte>> read(const std::string& name, std::vector<std::byte>& gathered) const = 0;
};

/// True for the endings of PyTorch's pickles: .pth, .pt, .bin, .ckpt.
bool is_pickle_path(const std::string& path);

}  // namespace troupe::model
