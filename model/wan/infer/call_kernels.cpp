#include "model/wan/infer/call_kernels.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "kernels/dispatch.h"
#include "model/program/unit_program.h"
#include "model/wan/dit_units.h"
#include "model/wan/infer/infer_programs.h"
#include "model/wan/model_cost.h"
#include "model/wan/unit_data.h"

namespace troupe::model {
namespace {

/// A program of a call, and how many keys a sample sees in each of its attentions, in order.
struct Recorded {
  Graph graph;
  std::vector<std::int64_t> seen;
};

class CallRecorder {
 public:
  CallRecorder(const ModelConfig& config, const WindowConfig& window, at::ScalarType dtype, const PlannedCall& call)
      : config_(config), call_(call), dtype_(dtype) {
    for (const UnitSpec& unit : dit_units(config)) {
      for (const ParamSpec& param : unit.params) params_.set(param.name, tensor(param.shape));
    }
    const SequenceLayout layout = planned_layout(config, window, /*trimmed=*/false);
    frame_tokens_ = layout.frame_tokens();
    block_ = {layout.block_video_tokens(), layout.actions_per_block, layout.states_per_block};
    const std::int64_t side = config.image_encoder.image_size / config.image_encoder.patch_size;
    image_rows_ = side * side + 1;
  }

  /// A forward of these tokens through tokens, blocks and, unless they are taken in, head.
  std::vector<Recorded> forward(const InferTokens& tokens, bool takes_in) const {
    const std::int64_t d = config_.dit.dim, layers = config_.dit.num_layers, new_tokens = tokens.count();
    const std::int64_t seen = frame_tokens_ * (1 + call_.seen_blocks * config_.latent_frames_per_block) -
                              (takes_in ? tokens.video : 0) + new_tokens;
    std::vector<Recorded> programs;
    programs.push_back({record_infer_tokens(params_, token_data(tokens)), {}});
    for (std::int64_t i = 0; i < layers; ++i) {
      const std::int64_t rows = call_.robots * (i == 0 ? 1 : call_.branches), all = call_.robots * call_.branches;
      const InferBlockForm form{.tokens = tokens,
                                .copies = i == 0 ? call_.branches : 1,
                                .last = i + 1 == layers,
                                .keys_only = takes_in && i + 1 == layers};
      const Batch data{{infer_data::kCos, rotations(rows * new_tokens)},
                       {infer_data::kSin, rotations(rows * new_tokens)},
                       {infer_data::kSeenRows, key_rows(rows)},
                       {infer_data::kTextRows, key_rows(all)},
                       {infer_data::kImageRows, key_rows(all)}};
      auto graph = record_infer_block(config_.dit, form, params_, "blocks." + std::to_string(i) + ".",
                                      tensor({rows, new_tokens, d}), tensor({1, 2, 6, d}), tensor({1, 1, d}), data);
      programs.push_back({std::move(graph), {seen, call_.prompt_rows, image_rows_}});
    }
    if (takes_in) return programs;
    const auto x = tensor({call_.robots * call_.branches, tokens.video + tokens.actions, d});
    programs.push_back({record_infer_head(config_.dit, tokens, params_, x, tensor({1, 2, d})), {}});
    return programs;
  }
  std::vector<Recorded> prefill() const { return forward({.video = block_.video}, /*takes_in=*/true); }
  std::vector<Recorded> step() const { return forward(block_, /*takes_in=*/false); }

 private:
  at::Tensor tensor(const std::vector<std::int64_t>& sizes) const {
    return at::empty(sizes, at::TensorOptions(at::kMeta).dtype(dtype_));
  }
  at::Tensor rotations(std::int64_t rows) const {
    return at::empty({rows, config_.dit.dim / config_.dit.num_heads / 2},
                     at::TensorOptions(at::kMeta).dtype(accumulate_dtype(dtype_)));
  }
  static at::Tensor key_rows(std::int64_t samples) {
    return at::empty({samples, 3}, at::TensorOptions(at::kMeta).dtype(at::kLong));
  }
  Batch token_data(const InferTokens& tokens) const {
    const auto n = call_.robots;
    Batch data{{unit_data::kPatches, tensor({n, tokens.video, 4 * config_.dit.in_dim})}};
    if (tokens.actions == 0) return data;
    data[unit_data::kActions] = tensor({n, tokens.actions, config_.dit.action_dim});
    data[unit_data::kActionSinusoid] = tensor({n, tokens.actions, config_.dit.dim});
    data[unit_data::kStates] = tensor({n, tokens.states, config_.dit.max_state_dim});
    return data;
  }

  const ModelConfig& config_;
  const PlannedCall& call_;
  const at::ScalarType dtype_;
  ParamView params_;
  std::int64_t frame_tokens_ = 0, image_rows_ = 0;
  InferTokens block_;
};

/// What lies in the store of keys says nothing of how many are seen.
std::vector<KernelWork> work_of(const Recorded& program) {
  std::vector<KernelWork> work;
  for (const auto& operation : program.graph.operations()) operation->add_work(program.graph, work);
  std::size_t attentions = 0;
  for (KernelWork& kernel : work) {
    if (is_attention(kernel.family)) kernel.n = program.seen.at(attentions++);
  }
  return work;
}

std::vector<std::vector<KernelWork>> works_of(const std::vector<Recorded>& programs) {
  std::vector<std::vector<KernelWork>> works;
  for (const auto& program : programs) works.push_back(work_of(program));
  return works;
}

}  // namespace

CallKernels call_kernels(const ModelConfig& config, const WindowConfig& window, at::ScalarType dtype,
                         const PlannedCall& call) {
  const CallRecorder recorder(config, window, dtype, call);
  return {.prefill = works_of(recorder.prefill()), .step = works_of(recorder.step())};
}

std::int64_t call_workspace_bytes(const ModelConfig& config, const WindowConfig& window, at::ScalarType dtype,
                                  const PlannedCall& call) {
  const CallRecorder recorder(config, window, dtype, call);
  std::int64_t workspace = 0, results = 0;
  const auto add = [&](std::vector<Recorded> programs) {
    for (auto& program : programs) {
      const UnitProgram planned(std::move(program.graph));
      workspace = std::max(workspace, planned.forward_pass().workspace_bytes);
      results = std::max(results, planned.forward_pass().stash_bytes);
    }
  };
  add(recorder.prefill());
  add(recorder.step());
  // of tokens, of two blocks in turn, and of the head
  return workspace + 4 * results;
}

}  // namespace troupe::model
