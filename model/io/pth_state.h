#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/io/pickle_machine.h"

namespace troupe {

/// A tensor of a state dict as the pickle describes it; checked, but its storage not looked up yet.
struct StoredTensor {
  std::string name;
  std::string_view dtype;  ///< as in safetensors
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  ///< elements; not negative
  std::int64_t first = 0;             ///< element of the storage
  std::int64_t numel = 1;
  std::string storage;  ///< key
  std::int64_t storage_numel = 0;
  std::int64_t offset = 0;  ///< in the file, of the opcode that made it
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

}  // namespace troupe
