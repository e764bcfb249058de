#pragma once

#include <ATen/ATen.h>

#include <string>

#include "configs/model_config.h"
#include "model/loss/flow_matching.h"
#include "model/wan/batch_keys.h"
#include "model/wan/dit.h"
#include "model/wan/t5_encoder.h"
#include "tests/support/golden_folder.h"
#include "tests/support/safetensors_file.h"
#include "tests/support/tensor_checks.h"

namespace troupe::testing {

/// What a network gave by the names of golden/dit; losses where it has one.
inline TensorMap outputs_by_name(const Outputs& outputs) {
  TensorMap named = {{"v_video", outputs.predictions.at(batch_keys::kVideoVelocity)},
                     {"v_action", outputs.predictions.at(batch_keys::kActionVelocity)}};
  if (!outputs.loss.defined()) return named;
  named["loss"] = outputs.loss;
  named["loss_video"] = outputs.metrics.at("dynamics_loss");
  named["loss_action"] = outputs.metrics.at("action_loss");
  return named;
}

/// The first frame's channels: four of a mask that is 1 in frame 0, and the latents `y`.
inline at::Tensor first_frame_channels_of(const at::Tensor& y) {
  auto mask = at::zeros({y.size(0), 4, y.size(2), y.size(3), y.size(4)}, y.options());
  mask.narrow(2, 0, 1).fill_(1.0);
  return at::cat({mask, y}, 1);
}

/// One training case of golden/dit, read and turned into what DitNetwork takes.
class GoldenDitCase {
 public:
  explicit GoldenDitCase(const GoldenCase& source)
      : json(source.json),
        all(load_safetensors(source.tensors())),
        in(with_prefix(all, "in.")),
        out(with_prefix(all, "out.")),
        weights(with_prefix(all, "w.")),
        grads(with_prefix(all, "grad.")) {}

  ModelConfig config() const {
    const auto& c = json.at("config");
    ModelConfig m;
    m.dit.type = c.at("model_type").get<std::string>();
    m.dit.dim = c.at("d").get<std::int64_t>();
    m.dit.num_heads = c.at("heads").get<std::int64_t>();
    m.dit.num_layers = c.at("layers").get<std::int64_t>();
    m.dit.ffn_dim = c.at("ffn").get<std::int64_t>();
    m.dit.freq_dim = c.at("freq_dim").get<std::int64_t>();
    m.dit.in_dim = c.at("in_dim").get<std::int64_t>();
    m.dit.out_dim = c.at("cz").get<std::int64_t>();
    m.dit.encoder_hidden = c.at("hidden").get<std::int64_t>();
    m.dit.action_dim = c.at("action_dim").get<std::int64_t>();
    m.dit.max_state_dim = c.at("state_dim").get<std::int64_t>();
    m.dit.concat_first_frame_latent = c.at("concat_first_frame_latent").get<bool>();
    m.text_encoder.dim = c.at("text_dim").get<std::int64_t>();
    m.image_encoder.dim = c.at("clip_dim").get<std::int64_t>();
    m.latent_frames_per_block = c.at("nfpb").get<std::int64_t>();
    m.states_per_block = c.at("nspb").get<std::int64_t>();
    return m;
  }

  DitNetwork network(bool trim) const {
    return {config(),
            json.at("config").at("max_chunk_size").get<std::int64_t>(),
            {.trim = trim, .decoupled_action_timesteps = decoupled()}};
  }

  bool decoupled() const { return json.at("config").value("decouple", false); }

  /// Ids from the recorded draws, or from the timesteps the DiT saw when a case has no draws.
  at::Tensor video_ids() const {
    const auto nfpb = json.at("config").at("nfpb").get<std::int64_t>();
    if (in.count("beta_draw") != 0) return tie_video_ids(ids_from_beta_draws(in.at("beta_draw")), nfpb);
    if (in.count("video_id_draw") != 0) return tie_video_ids(in.at("video_id_draw"), nfpb);
    return ids_of_timesteps(in.at("dit.t_video"));
  }
  at::Tensor action_ids() const {
    const auto& c = json.at("config");
    if (in.count("action_id_draw") != 0) return in.at("action_id_draw");
    if (decoupled()) return ids_of_timesteps(in.at("dit.t_action"));
    return coupled_action_ids(video_ids(), c.at("nfpb").get<std::int64_t>(), c.at("napb").get<std::int64_t>());
  }

  /// Everything by our own functions, from the recorded latents, actions, draws and encoder outputs. A case without
  /// noise gives what its DiT saw and no target, so the network predicts and has no loss.
  Batch batch() const {
    namespace key = batch_keys;
    const auto sigmas = make_flow_schedule().sigmas;
    const auto& x0 = input("x0");
    Batch b{{key::kCleanLatents, x0},      {key::kVideoIds, video_ids()}, {key::kActionIds, action_ids()},
            {key::kState, input("state")}, {key::kContext, context()},    {key::kClip, input("clip")}};
    if (in.count("eps") != 0) {
      const auto sigma = sigmas.index({b.at(key::kVideoIds)}).view({x0.size(0), 1, x0.size(2), 1, 1});
      const auto video = mix_noise(x0, in.at("eps"), sigma);
      b[key::kNoisyLatents] = video.noisy;
      b[key::kVideoTarget] = video.target;
    } else {
      b[key::kNoisyLatents] = in.at("dit.x_t");
    }
    if (in.count("action") != 0 && in.count("action_eps") != 0) {
      const auto sigma = sigmas.index({b.at(key::kActionIds)}).unsqueeze(2);
      const auto action = mix_noise(in.at("action"), in.at("action_eps"), sigma);
      b[key::kNoisyActions] = action.noisy;
      b[key::kActionTarget] = action.target;
    } else {
      b[key::kNoisyActions] = in.at("dit.action_t");
    }
    b[key::kActionMask] = recorded_or_true("action_mask", b.at(key::kNoisyActions).sizes());
    b[key::kHasRealAction] = recorded_or_true("has_real_action", {x0.size(0)});
    if (in.count("y_latent") != 0) {
      b[key::kFirstFrame] = first_frame_channels_of(in.at("y_latent"));
    } else if (in.count("dit.y") != 0) {
      b[key::kFirstFrame] = in.at("dit.y");
    }
    return b;
  }

  /// The case's own absolute tolerance for `name` ("out.v_video"), or twenty times typical f32 noise.
  double tolerance(const std::string& name) const {
    const auto table = json.find("recommended_abs_tolerance");
    if (table != json.end() && table->is_object() && table->contains(name)) return table->at(name).get<double>();
    return 3e-5;
  }

  /// Relative error against f32 allowed to the bf16 prediction `name` ("v_video"): the case's own limit, or twice the
  /// reference's error, or what the released cases would need at most.
  double bf16_limit(const std::string& name) const {
    const nlohmann::json::json_pointer limit("/recommended_tolerance/rel_l2_against_fp32/" + name);
    if (json.contains(limit)) return json.at(limit).get<double>();
    const auto rounded = out.find("bf16." + name), exact = out.find("fp32." + name);
    if (rounded == out.end() || exact == out.end()) return kUnmeasuredBf16;
    return 2 * relative_l2(rounded->second, exact->second);
  }
  static constexpr double kUnmeasuredBf16 = 2e-2;

  nlohmann::json json;
  TensorMap all, in, out, weights, grads;

 private:
  /// "in.NAME", or "in.dit.NAME" of a case that records only what its DiT saw.
  const at::Tensor& input(const std::string& name) const {
    const auto it = in.find(name);
    return it != in.end() ? it->second : in.at("dit." + name);
  }
  at::Tensor context() const {
    if (in.count("context_raw") == 0 || in.count("text_mask") == 0) return in.at("dit.context");
    return zero_tail(in.at("context_raw"), in.at("text_mask"), TailMode::batch_min);
  }
  at::Tensor recorded_or_true(const std::string& name, at::IntArrayRef sizes) const {
    const auto it = in.find(name);
    return it != in.end() ? it->second : at::ones(sizes, at::TensorOptions().dtype(at::kBool));
  }
  static at::Tensor ids_of_timesteps(const at::Tensor& t) {
    const auto table = make_flow_schedule().timesteps;
    return (t.to(at::kFloat).unsqueeze(-1) - table).abs().argmin(-1);
  }
};

}  // namespace troupe::testing
