#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "configs/data_config.h"
#include "configs/model_config.h"
#include "model/wan/sequence_layout.h"

namespace troupe::model {

/// Size and work of one unit of the DiT.
struct DitUnitCost {
  std::string name;
  std::string layout_class;
  /// elements of all parameters of the unit
  std::int64_t params = 0;
  /// per sample, nominal: nothing trimmed, no recompute; what MFU counts
  double forward_flops = 0;
  /// per sample, what DitNetwork runs with its options
  double executed_forward_flops = 0;
  /// of these, attention's
  double executed_attention_flops = 0;
};

/// Size and work of the transformer, for placement's ModelCost, where prompts differ and fill the text encoder's
/// length. What units keep: unit_memory_cost.h; what is frozen beside them: encoder_cost.h.
struct DitCost {
  std::vector<DitUnitCost> units;
  /// nominal sequence length N = 2V + A + S
  std::int64_t tokens = 0;
  /// N' of the trimmed sequence: N less the clean tokens of the last block of frames
  std::int64_t executed_tokens = 0;
  /// What a block's norms, activations and rotations read and write when its backward runs them again: about 12 rows of
  /// the width and 2 of the feed-forward layer a token.
  double replayed_bytes_per_sample = 0;
  double forward_flops() const;
  double executed_forward_flops() const;
};

/// `bytes_per_element` of activations: 4 for fp32, 2 for bf16.
DitCost dit_cost(const ModelConfig& config, const WindowConfig& window, std::int64_t bytes_per_element,
                 bool trim = true);

/// The sequence of a job's windows.
SequenceLayout planned_layout(const ModelConfig& config, const WindowConfig& window, bool trimmed);

}  // namespace troupe::model
