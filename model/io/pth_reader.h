#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/io/safetensors.h"

namespace troupe::model {

/// A state dict that torch.save wrote (a zip of `data.pkl` and raw storages), mapped read-only and read without
/// executing anything: see run_pickle for what is understood and state_tensors for how tensors are found and named. The
/// values of a storage stay in the mapping; a tensor is gathered only where it is not contiguous. Every tensor's place
/// is checked on opening. Immutable afterwards: any number of threads may read. docs/weights.md has the format.
///
/// Entries of the archive, below one folder: `data.pkl`, `data/<key>` (one raw little-endian storage each), `byteorder`
/// (absent, or "little"); others are not read. Opening costs address space and the pickle's values, not the tensors.
class PthReader {
 public:
  /// Errors: not_found; data_loss naming the file, what is refused (the opcode, the global, the entry) and the offset.
  static Result<PthReader> open(const std::string& path);

  PthReader(PthReader&&) noexcept;
  PthReader& operator=(PthReader&&) noexcept;
  ~PthReader();

  const std::string& path() const;
  /// Sorted; valid while the reader lives.
  const std::vector<std::string>& names() const;
  bool contains(std::string_view name) const;
  /// Name, dtype and shape. Errors: not_found, naming the file and the tensor.
  Result<TensorDeclaration> declaration(std::string_view name) const;
  /// Row-major little-endian values, numel times the dtype's size, possibly unaligned: in the mapping (valid while the
  /// reader lives), or in `gathered`, which is overwritten.
  /// Errors: not_found.
  Result<std::span<const std::byte>> read(std::string_view name, std::vector<std::byte>& gathered) const;

 private:
  struct Impl;
  explicit PthReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe::model
