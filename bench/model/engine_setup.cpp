#include "bench/model/engine_setup.h"

#include <fmt/format.h>

namespace troupe::bench {
namespace {

struct Model {
  const char* name;
  DitSize size;
};

/// The 5B's shape at an eighth and at a quarter of its width, heads of 128 channels: 1,000 nominal tokens, 512 text and
/// 257 image tokens.
const std::vector<Model> kModels = {
    {"25M", {.dim = 384, .num_heads = 3, .num_layers = 7, .ffn_dim = 1792}},
    {"150M", {.dim = 768, .num_heads = 6, .num_layers = 12, .ffn_dim = 3584}},
};
const std::vector<Model> kShortModels = {
    {"tiny",
     {.dim = 64,
      .num_heads = 2,
      .num_layers = 2,
      .ffn_dim = 128,
      .latent_height = 4,
      .latent_width = 4,
      .blocks = 2,
      .actions_per_block = 8,
      .text_tokens = 16,
      .image_tokens = 9}},
};

}  // namespace

std::vector<EngineSetup> engine_setups(bool is_short) {
  std::vector<EngineSetup> setups;
  const auto& models = is_short ? kShortModels : kModels;
  for (const auto& model : models) {
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
      for (const int micro : {1, 4}) {
        for (const int ranks : {1, 2}) {
          EngineSetup setup{.size = model.size, .dtype = dtype, .ranks = ranks, .threads = 2 / ranks};
          setup.size.samples = micro;
          setup.name = fmt::format("{}-{}-micro{}-{}x{}", model.name, dtype == at::kFloat ? "fp32" : "bf16", micro,
                                   ranks, setup.threads);
          // a step of the small model is over in a blink; one of four samples differs from one by its batch alone
          setup.steps = !is_short && &model == &models.front() && micro == 1 ? 3 : 1;
          setup.compares_steps = micro == 1;
          setup.compares_threads = &model == &models.back() && dtype == at::kFloat && micro == 1 && ranks == 1;
          // 8 samples and three trainers of 150 M parameters do not fit 24 GiB
          setup.one_at_a_time = &model == &models.back() && setup.samples() > 4;
          setups.push_back(std::move(setup));
        }
      }
    }
  }
  return setups;
}

}  // namespace troupe::bench
