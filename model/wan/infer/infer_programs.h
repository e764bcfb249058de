#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "configs/model_config.h"
#include "model/program/graph.h"
#include "model/shard/network.h"

namespace troupe::model {

// The transformer of DitInference as forwards alone (model/program): new tokens against the keys and values of a
// KeyStore, in the parameters' dtype. Tensors are looked at for their shapes and dtypes. B samples of all episodes,
// each with n branches (rows [sample, branch], branch fastest), T new tokens of a sample: V of video, then A actions,
// then S states.

/// What they read by name, besides what unit_data has.
namespace infer_data {
inline constexpr char kCos[] = "cos";  ///< [rows T, dh/2]: the rotations of all rows' tokens, one row after the other
inline constexpr char kSin[] = "sin";
/// i64 [rows, 3], as attention takes them (key_rows of kernels/attention.h): what the tokens see of the store in self
/// attention, with the new ones as the last
inline constexpr char kSeenRows[] = "seen_rows";
/// the same of state tokens that see each other alone
inline constexpr char kStateRows[] = "state_rows";
inline constexpr char kTextRows[] = "text_rows";    ///< [B n, 3], in cross attention
inline constexpr char kImageRows[] = "image_rows";  ///< [B n, 3]
/// i64 [B, 3]: where the keys of a context go
inline constexpr char kContextRows[] = "context_rows";
}  // namespace infer_data

/// Tokens of one sample in a forward.
struct InferTokens {
  std::int64_t video = 0, actions = 0, states = 0;
  std::int64_t count() const { return video + actions + states; }
};

/// Which form of a block.
struct InferBlockForm {
  InferTokens tokens;
  /// copies of each row that leave the block: n in layer 0, which is given one row of each sample, else 1
  std::int64_t copies = 1;
  /// the last block: states, which reach no output, have no queries
  bool last = false;
  /// nothing but keys and values is computed; no result
  bool keys_only = false;
  /// state tokens see only each other
  bool state_self_only = false;
};

/// e [1, 2, d] and e0 [1, 2, 6, d] of two timesteps: of the video, and of actions and states. Data: kTimeSinusoid.
Graph record_infer_times(const DitConfig& config, const ParamView& params, const Batch& data);
/// x [B, T, d]. Data: kPatches, and with actions kActions, kActionSinusoid and kStates.
Graph record_infer_tokens(const ParamView& params, const Batch& data);
/// One block over x [rows, T, d] and e0 (transformer_block of model/wan/dit_parts.h), with the store's keys [1, R, d]
/// and its values, like them, as inputs behind x, to which it appends those of the new tokens. `prefix`: "blocks.3.".
/// Attention, in order: over what was seen, of state tokens among themselves (state_self_only, but in the last block),
/// over text, over the picture.
Graph record_infer_block(const DitConfig& config, const InferBlockForm& form, const ParamView& params,
                         const std::string& prefix, const at::Tensor& x, const at::Tensor& modulation,
                         const at::Tensor& keys, const Batch& data);
/// Velocities [rows, V, 4 C] and [rows, A, action_dim] of the last block's x and e.
Graph record_infer_head(const DitConfig& config, const InferTokens& tokens, const ParamView& params,
                        const at::Tensor& x, const at::Tensor& times);

/// What a context is: a prompt's features, or a picture's.
enum class ContextKind : std::uint8_t { text, image };
/// [B, L, d] of features [B, L, width]: kText or kImage of unit_data.
Graph record_infer_context(ContextKind kind, const ParamView& params, const Batch& data);
/// Writes a layer's cross-attention keys and values of that to the store's, which are inputs behind it.
Graph record_context_keys(const DitConfig& config, ContextKind kind, const ParamView& params, const std::string& prefix,
                          const at::Tensor& context, const at::Tensor& keys, const Batch& data);

}  // namespace troupe::model
