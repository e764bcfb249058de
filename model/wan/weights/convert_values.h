#pragma once

#include "base/result.h"
#include "model/io/safetensors.h"
#include "model/io/tensor_source.h"
#include "model/wan/weights/convert_plan.h"

namespace troupe::model {

/// Appends one tensor's values to a file, cast to their new dtype and with its adapter added. Works on pieces of a few
/// MiB. Errors: those of the source and the writer.
Result<void> write_values(const TensorSource& source, const PlannedTensor& tensor, double lora_scale,
                          SafetensorsWriter& writer);

}  // namespace troupe::model
