#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "configs/job_config.h"
#include "model/shard/network.h"
#include "model/wan/dit.h"

namespace troupe::bench {

using NamedTensors = std::map<std::string, at::Tensor>;

/// Sizes of a run of the bench.
struct DitSize {
  std::int64_t dim = 768;
  std::int64_t num_heads = 6;
  std::int64_t num_layers = 12;
  std::int64_t ffn_dim = 3584;
  std::int64_t latent_height = 10, latent_width = 20;
  std::int64_t blocks = 4, actions_per_block = 24;
  std::int64_t text_tokens = 512, image_tokens = 257;
  std::int64_t samples = 1;
};

/// The DiT that is timed: weights, samples with targets, and the network. The 5B's shape at a quarter of its
/// width by default: 1,000 nominal tokens, 512 text and 257 image tokens.
struct DitCase {
  ModelConfig config;
  std::int64_t max_blocks = 0;
  std::shared_ptr<const DitNetwork> network;
  NamedTensors weights;  ///< by name; larger than initial ones, so that every path matters
  Batch batch;
  std::int64_t parameters = 0;

  /// Leaves over the weights, one view for each unit.
  std::vector<ParamView> views() const;
};

DitCase make_dit_case(const DitSize& size, at::ScalarType dtype);

/// The samples alone, in that dtype.
Batch make_dit_batch(const DitSize& size, at::ScalarType dtype);
/// Of another model, whose channels are not those of `size`.
Batch make_dit_batch(const ModelConfig& config, const DitSize& size, at::ScalarType dtype);
/// Of a micro-batch of that job; the width and number of blocks are the config's.
DitSize dit_size_of(const JobConfig& job);

}  // namespace troupe::bench
