#include "model/wan/unit_kernels.h"

#include <algorithm>
#include <map>
#include <utility>

#include "kernels/dispatch.h"
#include "model/wan/lora.h"
#include "model/wan/model_cost.h"
#include "model/wan/planned_block.h"
#include "model/wan/recorded_layers.h"

namespace troupe::model {
namespace {

/// Operators on a few numbers: ids, timesteps, tables and weights of samples.
constexpr double kPrologueOperators = 25, kHeadOperators = 40;

std::vector<KernelWork> kernels_of(const UnitProgram& program, const Pass& pass) {
  std::vector<KernelWork> work;
  for (const Operation* operation : pass.operations) operation->add_work(program.graph(), work);
  return work;
}

struct Counts {
  const ModelConfig& config;
  SequenceLayout layout;
  at::ScalarType dtype;
  std::int64_t samples;

  std::int64_t rows(std::int64_t of_sample) const { return samples * of_sample; }
  std::int64_t actions() const { return rows(layout.blocks * layout.actions_per_block); }
};

RecordedLayers prologue(const UnitSpec& unit, const Counts& counts) {
  const auto& [config, layout, dtype, samples] = counts;
  const DitConfig& dit = config.dit;
  const std::int64_t d = dit.dim, clip = config.image_encoder.dim;
  const std::int64_t side = config.image_encoder.image_size / config.image_encoder.patch_size;
  const std::int64_t text = counts.rows(config.text_encoder.max_length), image = counts.rows(1 + side * side);
  const bool decoupled = config.noise.decouple_video_action;
  const std::int64_t times = counts.rows(2 + layout.blocks) + (decoupled ? counts.actions() : 0);
  const std::int64_t states = counts.rows(layout.blocks * layout.states_per_block);
  RecordedLayers layers(unit, dtype);
  layers.add_chain({{.name = "time_embedding.0", .rows = times, .in = dit.freq_dim, .out = d, .operators = 1},
                    {.name = "time_embedding.2", .rows = times, .in = d, .out = d, .operators = 1},
                    {.name = "time_projection.1", .rows = times, .in = d, .out = 6 * d}},
                   false);
  for (const std::int64_t tokens : {layout.clean_tokens(), layout.video_tokens()}) {
    const std::int64_t rows = counts.rows(tokens), patch = 4 * dit.in_dim;
    layers.add_operators(1, static_cast<double>(rows * patch), dtype);
    layers.add_chain(
        {{.name = "patch_embedding", .rows = rows, .in = patch, .out = d, .operators = 0, .is_library = true}}, false);
  }
  layers.add_chain(
      {{.name = "action_encoder.W1", .rows = counts.actions(), .in = dit.action_dim, .out = d, .operators = 1},
       {.name = "action_encoder.W2", .rows = counts.actions(), .in = 2 * d, .out = d, .operators = 1},
       {.name = "action_encoder.W3", .rows = counts.actions(), .in = d, .out = d}},
      false);
  layers.add_chain({{.name = "state_encoder.layer1",
                     .rows = states,
                     .in = dit.max_state_dim,
                     .out = dit.encoder_hidden,
                     .operators = 1},
                    {.name = "state_encoder.layer2", .rows = states, .in = dit.encoder_hidden, .out = d}},
                   false);
  layers.add_chain({{.name = "text_embedding.0", .rows = text, .in = config.text_encoder.dim, .out = d, .operators = 1},
                    {.name = "text_embedding.2", .rows = text, .in = d, .out = d}},
                   false);
  layers.add_operators(1, static_cast<double>(image * clip), accumulate_dtype(dtype));
  layers.add_chain({{.name = "img_emb.proj.1", .rows = image, .in = clip, .out = clip, .operators = 1},
                    {.name = "img_emb.proj.3", .rows = image, .in = clip, .out = d, .operators = 1}},
                   unit.trainable);
  // groups and the whole sequence are joined
  layers.add_operators(2, static_cast<double>(counts.rows(layout.tokens()) * d), dtype);
  layers.add_operators(kPrologueOperators, 0, dtype);
  return layers;
}

RecordedLayers head(const UnitSpec& unit, const Counts& counts) {
  const auto& [config, layout, dtype, samples] = counts;
  const DitConfig& dit = config.dit;
  const std::int64_t video = counts.rows(layout.video_tokens()), d = dit.dim;
  RecordedLayers layers(unit, dtype);
  layers.add_operators(1, static_cast<double>(video * d), dtype);
  const bool is_bf16 = dtype == at::kBFloat16;
  const double row_bytes = static_cast<double>(video * d) * static_cast<double>(c10::elementSize(dtype));
  layers.add_kernels({.family = KernelFamily::norm, .is_bf16 = is_bf16, .bytes = 2 * row_bytes},
                     {.family = KernelFamily::norm_gradient, .is_bf16 = is_bf16, .bytes = 3 * row_bytes});
  layers.add_chain({{.name = "head.head", .rows = video, .in = d, .out = 4 * dit.out_dim, .operators = 1}}, true);
  layers.add_chain(
      {{.name = "action_decoder.layer1", .rows = counts.actions(), .in = d, .out = dit.encoder_hidden, .operators = 1},
       {.name = "action_decoder.layer2", .rows = counts.actions(), .in = dit.encoder_hidden, .out = dit.action_dim}},
      true);
  // squared differences from the target, their weights and means
  layers.add_operators(5, static_cast<double>(video * 4 * dit.out_dim), at::kFloat);
  layers.add_operators(kHeadOperators, 0, dtype);
  return layers;
}

}  // namespace

std::vector<UnitKernels> unit_kernels(const ModelConfig& config, const WindowConfig& window, at::ScalarType dtype,
                                      std::int64_t samples, std::span<const RecomputeLevel> levels) {
  const auto units = training_units(config);
  const Counts counts{config, planned_layout(config, window, /*trimmed=*/true), dtype, samples};
  const PlannedBlocks blocks(config, window, dtype, samples);
  std::map<std::pair<bool, RecomputeLevel>, UnitKernels> of_level;
  std::vector<UnitKernels> all;
  for (std::size_t u = 0; u < units.size(); ++u) {
    const RecomputeLevel level = levels[std::min(u, levels.size() - 1)];
    if (u == 0 || u + 1 == units.size()) {
      const RecordedLayers layers = u == 0 ? prologue(units[u], counts) : head(units[u], counts);
      UnitKernels& unit = all.emplace_back(UnitKernels{layers.forward(), layers.backward()});
      // the head is recorded by its forward
      if (u == 0 && level != RecomputeLevel::none)
        unit.backward.insert(unit.backward.begin(), unit.forward.begin(), unit.forward.end());
      continue;
    }
    const bool is_last = u + 2 == units.size();
    const auto [found, is_new] = of_level.try_emplace({is_last, level});
    if (is_new) {
      const UnitProgram program = blocks.program(is_last, level);
      found->second = {kernels_of(program, program.forward_pass()), kernels_of(program, program.backward_pass())};
    }
    all.push_back(found->second);
  }
  return all;
}

}  // namespace troupe::model
