#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "configs/model_config.h"
#include "model/io/tensor_source.h"
#include "model/wan/weights/inspect_weights.h"

namespace troupe::model {

/// How the tensors of a converted checkpoint are named and split into files (docs/weights.md).
enum class WeightLayout : std::uint8_t {
  /// plain names, one folder per component (none for a single one), model*.safetensors
  troupe,
  /// the same with diffusion_pytorch_model*.safetensors
  wan,
  /// full names of all components in one checkpoint, model*.safetensors
  dreamzero
};

/// What becomes of the values. Tensors that are not floats stay as they are.
enum class WeightDtype : std::uint8_t { keep, fp32, bf16 };

struct ConvertRequest {
  /// the folder that is written
  std::string out{};
  WeightLayout layout = WeightLayout::troupe;
  WeightDtype dtype = WeightDtype::keep;
  /// adapters are added to the weights they adapt: W + lora_scale * B A
  bool merge_lora = false;
  /// alpha / rank of the adapters that are merged
  double lora_scale = 1.0;
  /// most tensor bytes of a file with more than one tensor
  std::int64_t shard_bytes = 5'000'000'000;
};

/// One file of the result.
struct ConvertedFile {
  /// relative to the folder
  std::string path;
  std::int64_t bytes = 0;
  /// an earlier, interrupted conversion had finished it
  bool reused = false;
};

/// Writes what inspect_weights() reported of `source` in another layout. Values are streamed: beside the mapping,
/// memory is bounded by one tensor that is not contiguous in a .pth, else by a few MiB. Equal requests give equal
/// bytes, also when interrupted and repeated: each file is written as NAME.tmp, synced and renamed, and
/// `conversion.json` lists the request, a fingerprint of the source and the digest of every finished file; a repeated
/// call verifies those and writes the rest. An index is written last.
/// Errors: invalid_argument (the report is not sound, a tensor is no float where it must be, adapters that do not fit
/// their weight); failed_precondition (the folder holds another conversion or files of the result's names that this
/// conversion did not write); data_loss; those of file_error.
/// `progress`: told how many tensors are done, those of finished files among them.
/// Fault points: convert.tensor (subject: path of the file and the tensor), convert.file (path).
Result<std::vector<ConvertedFile>> convert_weights(const TensorSource& source, const WeightsReport& report,
                                                   const ConvertRequest& request, const Progress& progress = {});

}  // namespace troupe::model
