#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/wan/weights/convert.h"

namespace troupe::model {

/// A tensor of the result and where its values come from.
struct PlannedTensor {
  TensorDeclaration declared;
  std::string stored;  ///< its name in the source
  std::string stored_dtype;
  AdapterNames adapter;  ///< merged into it; empty: none
};

/// A file of the result, tensors in the order of their names.
struct PlannedFile {
  std::string path;  ///< below the folder
  std::vector<PlannedTensor> tensors;
};

/// The files of one checkpoint, and its index when there are several.
struct PlannedCheckpoint {
  std::vector<PlannedFile> files;
  std::string index_path;  ///< empty: a single file
};

/// Depends on names, shapes and the request only. Errors: invalid_argument.
Result<std::vector<PlannedCheckpoint>> plan_conversion(const TensorSource& source, const WeightsReport& report,
                                                       const ConvertRequest& request);

/// Bytes of a tensor's values: elements times the size of its dtype, one of safetensors_dtype_size's names.
std::int64_t tensor_bytes(const TensorDeclaration& tensor);

}  // namespace troupe::model
