#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/io/pickle_machine.h"

namespace troupe::model {

/// A tensor of a state dict as the pickle describes it; checked, but its storage not looked up yet. Element (i, j, ...)
/// is element first + i strides[0] + j strides[1] + ... of the storage.
struct StoredTensor {
  std::string name;
  /// safetensors' name of the dtype, such as "BF16"
  std::string_view dtype;
  /// extents, slowest axis first, at most 64 of them; empty for a scalar
  std::vector<std::int64_t> shape;
  /// distance of neighbours along each axis, in elements; not negative
  std::vector<std::int64_t> strides;
  /// element of the storage at which the tensor begins
  std::int64_t first = 0;
  std::int64_t numel = 1;
  /// key of the storage: entry `data/<key>` of the archive
  std::string storage;
  std::int64_t storage_numel = 0;
  /// in the file, of the opcode that made it
  std::int64_t offset = 0;
  bool contiguous = false;
};

/// Containers nested deeper, more of their entries, and longer names than this are refused: a small pickle can share
/// one container a million times.
inline constexpr int kMaxStateDepth = 32;
inline constexpr std::int64_t kMaxStateEntries = 200'000;
inline constexpr std::size_t kMaxTensorName = 1024;

/// The tensors below the pickle's root, sorted by name. A root without tensors of its own is left for its entry
/// state_dict, model_state_dict, model, module or params when exactly one of these is a dict that is not empty, as
/// often as that is so.
/// Names of what remains are joined with dots, sequences by position; values that are no tensors are passed over.
/// Throws FormatError: a tensor that does not lie in its storage, or has more elements than it (an expanded view), a
/// name given twice, a root that is no dict or holds no tensor, or a breach of the limits above.
std::vector<StoredTensor> state_tensors(const PickleTree& tree);

}  // namespace troupe::model
