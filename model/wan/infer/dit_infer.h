#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "configs/model_config.h"
#include "device/device.h"
#include "kernels/device_names.h"
#include "model/program/program_cache.h"
#include "model/program/unit_memory.h"
#include "model/shard/network.h"
#include "model/wan/infer/dit_episode.h"
#include "model/wan/infer/infer_programs.h"
#include "model/wan/rope.h"
#include "model/wan/sequence_layout.h"

namespace troupe::model {

/// What an episode starts from.
struct EpisodeContext {
  /// one per branch; each for all samples, or one sample for all
  std::vector<std::shared_ptr<const TextKeys>> text;
  /// [B, 257, image width]: CLIP features of the first frame
  at::Tensor clip;
  /// [B, 4 + Cz, F, h, w] with concat_first_frame_latent (batch_keys.h), else not read
  at::Tensor first_frame;
  /// of the latents, both even
  std::int64_t height = 0, width = 0;
};

/// Velocities of one evaluation; axis 1 is the branch.
struct Velocities {
  /// [B, branches, Cz, n, h, w], estimate of noise - latents
  at::Tensor video;
  /// [B, branches, A, D], estimate of noise - actions
  at::Tensor actions;
};

/// Noisy samples of all episodes of an evaluation, one after the other in axis 0, and their timesteps.
struct NoisyBlock {
  /// [B, Cz, nfpb, h, w]
  at::Tensor video;
  /// [B, napb, D]
  at::Tensor actions;
  /// [B, nspb, state dimensions]
  at::Tensor states;
  double t_video = 0;
  double t_action = 0;
};

/// Where a transformer computes: the host's cores without a device.
struct InferDevice {
  /// outlives what computes there
  kernels::ComputeDevice* device = nullptr;
  /// what a program enqueues is captured, and launched as one CUDA graph from its second run on
  bool graphs = true;
};

struct DitInferenceOptions {
  /// state tokens see only each other
  bool state_self_only = false;
  InferDevice where = {};
};

/// DreamZero's transformer as a policy runs it: new tokens against the keys and values of their episodes, without
/// gradients, in the parameters' dtype throughout (P-infer of docs/precision.md#profiles). Recorded programs
/// (model/wan/infer/infer_programs.h) over one KeyStore: episodes that stand at different frames, and their branches,
/// run as one batch in every operation. Inputs and results are the host's. Not thread-safe.
class DitInference {
 public:
  /// `params` has every tensor of dit_units(config), dense, on the host; a device gets a copy, and heads of a size that
  /// it takes (kernels/attention_plan.h). `max_blocks` is the window's length in blocks. On a device bf16 products are
  /// native in this process (kernels/product.h). Throws std::bad_alloc, and c10::Error where the device fails.
  DitInference(const ModelConfig& config, std::int64_t max_blocks, std::int64_t actions_per_block, ParamView params,
               DitInferenceOptions options = {});

  /// Other values of some parameters, with the shapes and dtypes of before; a device takes them into the same memory,
  /// so that its graphs stay. Keys and values of before are of no further use. Throws c10::Error as the constructor
  /// does, and for a name or a shape that differs.
  void set_parameters(const ParamView& params);

  /// Keys and values of a prompt, from its text features [B, L, text width].
  std::shared_ptr<const TextKeys> text_keys(const at::Tensor& context_BLC);

  /// Episodes that have seen nothing yet. Throws c10::Error for an odd latent height or width, of which the
  /// transformer would drop a row, or features that do not fit.
  std::vector<std::unique_ptr<DitEpisode>> begin(std::span<const EpisodeContext> contexts);

  /// Takes clean latents [B, Cz, n, h, w] (t = 0, no register): frame 0 for episodes that have seen nothing, the next
  /// nfpb frames for others, so n must fit all of them. Afterwards each episode has n frames more.
  void prefill(std::span<DitEpisode* const> episodes, const at::Tensor& latents);

  /// Velocities of the block behind each episode's frames; episodes keep what they have.
  Velocities evaluate(std::span<DitEpisode* const> episodes, const NoisyBlock& noisy);

  const ModelConfig& config() const { return config_; }
  std::int64_t max_blocks() const { return max_blocks_; }
  std::int64_t actions_per_block() const { return actions_per_block_; }
  at::ScalarType dtype() const;

 private:
  /// e and e0 of the timesteps of video and actions (record_infer_times).
  struct Times {
    at::Tensor e, e0;
  };
  /// The window's rotations for one size of latents.
  struct Window {
    SequenceLayout layout;
    RopeTables rope;
  };
  /// New tokens of some episodes.
  struct Turn {
    std::span<DitEpisode* const> episodes;
    std::int64_t samples = 0, branches = 1;
    InferTokens tokens;
    SequenceLayout layout;
    /// of the episodes' places in the window: each one's first row of the rotations
    std::vector<std::int64_t> rotation_rows;
    const RopeTables& rope;
  };
  void check(const EpisodeContext& context) const;
  const Times& times(double t_video, double t_action);
  const Window& window(std::int64_t height, std::int64_t width);
  Turn make_turn(std::span<DitEpisode* const> episodes, const at::Tensor& latents, bool with_register);
  /// The noisy or clean latents as rows of patches, with what stands beside them.
  at::Tensor patches(std::span<DitEpisode* const> episodes, const at::Tensor& latents) const;
  /// What blocks read whose rows are `copies` for each sample.
  Batch block_data(const Turn& turn, std::int64_t copies) const;
  /// All blocks; undefined where the last makes keys alone.
  at::Tensor run_blocks(const Turn& turn, at::Tensor x, const Times& at_times, bool keys_only);
  /// Writes the keys and values of features [B, L, width], one after the other for the samples of each context.
  void make_context_keys(ContextKind kind, const at::Tensor& features, std::span<const ContextKeys* const> contexts);
  /// Runs the forward that `record` writes, known by `key`, at a place of the memory.
  std::vector<at::Tensor> run(const std::string& key, const std::function<Graph()>& record,
                              const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& conditioning,
                              const std::string& prefix, const Batch& data, std::int64_t place);
  /// The inputs of a layer's programs: x, and the store's keys and values.
  std::vector<at::Tensor> with_store(const at::Tensor& x, std::int64_t layer) const;
  /// Around the programs of a call: waits for what one that threw has left, whose error is its own; and for the device.
  void start();
  void finish();

  ModelConfig config_;
  std::int64_t max_blocks_, actions_per_block_;
  bool state_self_only_;
  ProgramCache programs_;
  device::Device& device_;
  std::unique_ptr<device::Stream> stream_;
  ParamView params_;
  std::shared_ptr<KeyStore> store_;
  /// of the store when graphs were last captured
  std::int64_t rows_of_graphs_ = 0;
  UnitMemory memory_;
  std::map<std::pair<double, double>, Times> times_;
  std::map<std::pair<std::int64_t, std::int64_t>, Window> windows_;
};

}  // namespace troupe::model
