#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"

namespace troupe::model {

/// Tensor to file, from the index beside a checkpoint of several files (Hugging Face's *.safetensors.index.json):
/// {"metadata": {"total_size": n}, "weight_map": {tensor: file}}.
using WeightMap = std::map<std::string, std::string, std::less<>>;

/// A longer index is refused.
inline constexpr std::int64_t kMaxWeightIndex = 100'000'000;

/// Reads an index. total_size is not checked: writers count it differently. Errors: not_found; data_loss naming the
/// file and the offset: bad JSON, a tensor named twice, no weight_map, or a file name that is not a plain name (it
/// would lie outside the index's folder).
Result<WeightMap> read_weight_index(const std::string& path);

/// The text of an index, indented by two spaces, keys sorted, with a line feed at the end; equal maps give equal text.
/// `total_bytes` becomes metadata.total_size: the bytes of all tensors' values, headers not counted.
std::string weight_index_text(const WeightMap& map, std::int64_t total_bytes);

}  // namespace troupe::model
