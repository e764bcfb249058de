#include "model/wan/model_cost.h"

#include "model/wan/dit_units.h"
#include "model/wan/numbers.h"
#include "model/wan/sequence_layout.h"

namespace troupe::model {
namespace {

/// Attention of one block: of its own rows, and of `outputs` rows over the context.
double attention_flops(const ModelConfig& config, double outputs, double pairs, double context) {
  return 4 * (pairs + outputs * context) * to_double(config.dit.dim);
}

/// One block whose keys and values come from `rows` tokens and whose other work is done for `outputs` of them.
double block_flops(const ModelConfig& config, double rows, double outputs, double pairs, double text, double image) {
  const double d = to_double(config.dit.dim), ffn = to_double(config.dit.ffn_dim);
  const double self = 2 * d * d * (2 * rows + 2 * outputs);
  const double cross = 2 * d * d * 2 * outputs + 2 * (text + image) * 2 * d * d;
  return self + cross + 4 * outputs * d * ffn + attention_flops(config, outputs, pairs, text + image);
}

/// The prologue: patches of `video_rows` tokens, time MLPs of `time_rows`, context, actions and states.
double embed_flops(const ModelConfig& config, const SequenceLayout& layout, double video_rows, double time_rows,
                   double text, double image) {
  const auto& dit = config.dit;
  const double d = to_double(dit.dim), clip = to_double(config.image_encoder.dim),
               hidden = to_double(dit.encoder_hidden);
  const double actions = to_double(layout.blocks * layout.actions_per_block);
  const double states = to_double(layout.blocks * layout.states_per_block);
  return 2 * video_rows * 4 * to_double(dit.in_dim) * d + 2 * time_rows * (to_double(dit.freq_dim) * d + 7 * d * d) +
         2 * text * (to_double(config.text_encoder.dim) * d + d * d) + 2 * image * (clip * clip + clip * d) +
         2 * actions * (to_double(dit.action_dim) * d + 3 * d * d) +
         2 * states * (to_double(dit.max_state_dim) * hidden + hidden * d);
}

double head_flops(const ModelConfig& config, const SequenceLayout& layout) {
  const auto& dit = config.dit;
  const double d = to_double(dit.dim), hidden = to_double(dit.encoder_hidden);
  const double actions = to_double(layout.blocks * layout.actions_per_block);
  return 2 * actions * (d * hidden + to_double(dit.action_dim) * hidden) +
         2 * to_double(layout.video_tokens()) * d * 4 * to_double(dit.out_dim);
}

}  // namespace

SequenceLayout planned_layout(const ModelConfig& config, const WindowConfig& window, bool trimmed) {
  SequenceLayout layout;
  layout.frames = 1 + window.chunks * config.latent_frames_per_block;
  layout.grid_rows = config.target_height / config.codec.stride_hw / 2;
  layout.grid_cols = config.target_width / config.codec.stride_hw / 2;
  layout.frames_per_block = config.latent_frames_per_block;
  layout.blocks = window.chunks;
  layout.actions_per_block = window.action_horizon;
  layout.states_per_block = config.states_per_block;
  layout.max_blocks = window.chunks;
  layout.trimmed = trimmed;
  return layout;
}

double DitCost::forward_flops() const {
  double total = 0;
  for (const auto& unit : units) total += unit.forward_flops;
  return total;
}

double DitCost::executed_forward_flops() const {
  double total = 0;
  for (const auto& unit : units) total += unit.executed_forward_flops;
  return total;
}

DitCost dit_cost(const ModelConfig& config, const WindowConfig& window, std::int64_t bytes_per_element, bool trim) {
  const auto whole = planned_layout(config, window, false), run = planned_layout(config, window, trim);
  const auto patch_side = config.image_encoder.image_size / config.image_encoder.patch_size;
  const double text = to_double(config.text_encoder.max_length), image = to_double(1 + patch_side * patch_side);
  const double n = to_double(whole.tokens()), rows = to_double(run.tokens());
  const auto outputs = run.output_segments();
  double output_rows = 0;
  for (const auto& segment : outputs) output_rows += to_double(segment.query.size());

  DitCost cost;
  cost.tokens = whole.tokens();
  cost.executed_tokens = run.tokens();
  const auto units = dit_units(config);
  for (std::size_t i = 0; i < units.size(); ++i) {
    DitUnitCost unit{units[i].name, units[i].layout_class, count_parameters(units[i]), 0, 0, 0};
    if (i == 0) {
      unit.forward_flops = embed_flops(config, whole, 2 * to_double(whole.video_tokens()), n, text, image);
      unit.executed_forward_flops = embed_flops(config, run, to_double(run.clean_tokens() + run.video_tokens()),
                                                to_double(2 + run.blocks), text, image);
    } else if (i + 1 == units.size()) {
      unit.forward_flops = unit.executed_forward_flops = head_flops(config, whole);
    } else {
      const bool last = trim && i + 2 == units.size();
      unit.forward_flops = block_flops(config, n, n, visible_pairs(whole.segments()), text, image);
      const double pairs = visible_pairs(last ? outputs : run.segments()), queries = last ? output_rows : rows;
      unit.executed_forward_flops = block_flops(config, rows, queries, pairs, text, image);
      unit.executed_attention_flops = attention_flops(config, queries, pairs, text + image);
    }
    cost.units.push_back(std::move(unit));
  }
  const auto d = config.dit.dim;
  cost.replayed_bytes_per_sample = to_double(bytes_per_element * run.tokens() * (12 * d + 2 * config.dit.ffn_dim));
  return cost;
}

}  // namespace troupe::model
