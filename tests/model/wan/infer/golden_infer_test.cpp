// Policy calls against the reference's own numbers, from latents and encoder outputs on (golden/dit, kind infer).
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <regex>

#include "model/wan/infer/call_protocol.h"
#include "model/wan/infer/denoise.h"
#include "tests/model/wan/golden_dit_case.h"
#include "tests/model/wan/infer/infer_fixture.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

/// What one call did.
struct CallRecord {
  bool reset = false;
  std::vector<std::int64_t> prefill_starts;
  std::int64_t denoise_start = 0, kv_seen = 0, kv_after = 0, start_after = 0;
  std::vector<bool> evaluated;
  std::map<std::string, at::Tensor> tensors;  ///< by the golden file's names
};

/// The reference's run: calls one after the other on one batch of robots.
class GoldenInferRun {
 public:
  GoldenInferRun(const GoldenDitCase& golden, const InferOptions& options)
      : golden_(golden),
        options_(options),
        protocol_{config().at("nfpb").get<std::int64_t>(), config().at("max_chunk_size").get<std::int64_t>(), 4},
        denoiser_(options),
        dit_(golden.config(), protocol_.max_blocks, config().at("napb").get<std::int64_t>(), all_weights(golden)) {}

  CallRecord call(std::int64_t number, std::int64_t frames) {
    CallRecord record;
    const auto prefix = "call" + std::to_string(number) + ".";
    record.reset = protocol_.starts_episode(frames, episode_ ? episode_->frames : 0, true);
    at::Tensor shown;  // f0 leads the video of an episode's first call
    if (record.reset) {
      shown = start(prefix);
    } else {
      const auto& latents = golden_.in.at(prefix + "latents");
      const auto kept = protocol_.frames_per_block;
      shown = latents.narrow(2, latents.size(2) - kept, kept);
    }
    DitEpisode* const episodes[] = {episode_.get()};
    // one entry per branch, as the reference prefills them one after the other
    record.prefill_starts.assign(static_cast<std::size_t>(options_.branches()), episode_->frames);
    dit_.prefill(episodes, shown);
    record.denoise_start = episode_->frames;
    record.kv_seen = episode_->tokens;
    denoise(prefix, record);
    if (record.reset) record.tensors["video"] = at::cat({shown, record.tensors["video"]}, 2);
    record.kv_after = episode_->tokens;
    record.start_after = episode_->frames + protocol_.frames_per_block;
    add_caches(record);
    return record;
  }

 private:
  const nlohmann::json& config() const { return golden_.json.at("config"); }

  static ParamView all_weights(const GoldenDitCase& golden) {
    ParamView view;
    for (const auto& [name, tensor] : golden.weights) view.set(name, tensor);
    return view;
  }

  std::shared_ptr<const TextKeys> text(const std::string& which) {
    const auto& context = golden_.in.at("context_" + which + "_raw");
    const auto mask = golden_.in.find("text_mask_" + which);
    if (mask == golden_.in.end()) return dit_.text_keys(context);
    return dit_.text_keys(zero_tail(context, mask->second, TailMode::batch_min));
  }

  at::Tensor start(const std::string& prefix) {
    const auto& y = golden_.in.at(prefix + "y_latent");
    EpisodeContext context;
    context.text.push_back(text("pos"));
    if (options_.branches() > 1) context.text.push_back(text("neg"));
    context.clip = golden_.in.at(prefix + "clip");
    context.first_frame = testing::first_frame_channels_of(y);
    context.height = y.size(3);
    context.width = y.size(4);
    episode_ = std::move(dit_.begin({&context, 1}).front());
    return y.narrow(2, 0, 1);
  }

  void denoise(const std::string& prefix, CallRecord& record) {
    std::map<std::string, std::vector<at::Tensor>> steps;
    const DenoiseRequest requests[] = {
        {episode_.get(), golden_.in.at("noise_video"), golden_.in.at("noise_action"), golden_.in.at(prefix + "state")}};
    const auto done = denoiser_.run(dit_, requests, [&steps](const DenoiseStep& step) {
      if (step.velocities != nullptr) {
        const auto& video = step.velocities->video;
        steps["v_cond"].push_back(video.select(1, 0));
        if (video.size(1) > 1) steps["v_uncond"].push_back(video.select(1, 1));
        steps["a_cond"].push_back(step.velocities->actions.select(1, 0));
      }
      steps["x_video_after_step"].push_back(step.video);
      steps["x_action_after_step"].push_back(step.actions);
    });
    for (const auto& [name, list] : steps) record.tensors[name] = at::stack(list);
    record.evaluated = done.front().evaluated;
    record.tensors["video"] = done.front().video;
    record.tensors["action"] = done.front().actions;
  }

  void add_caches(CallRecord& record) const {
    const char* const names[] = {"cond", "uncond"};
    for (std::int64_t layer = 0; layer < dit_.config().dit.num_layers; ++layer) {
      const auto heads = std::vector<std::int64_t>{dit_.config().dit.num_heads, -1};
      const auto rows = at::stack({seen_keys(*episode_, layer), seen_values(*episode_, layer)}).unflatten(-1, heads);
      for (std::int64_t branch = 0; branch < options_.branches(); ++branch) {
        // in layer 0 the branches share rows
        const auto own = rows.select(2, layer == 0 ? 0 : branch);
        record.tensors["kv_" + std::string(names[branch]) + "_layer" + std::to_string(layer)] = own.clone();
      }
    }
  }

  const GoldenDitCase& golden_;
  InferOptions options_;
  CallProtocol protocol_;
  Denoiser denoiser_;
  DitInference dit_;
  std::unique_ptr<DitEpisode> episode_;
};

InferOptions base_options(const GoldenDitCase& golden) {
  InferOptions options;
  const auto constants = golden.json.value("constants", nlohmann::json::object());
  options.steps = constants.value("steps", options.steps);
  options.cfg_scale = constants.value("cfg_scale", options.cfg_scale);
  options.shift = constants.value("shift", options.shift);
  const auto evaluated = golden.json.at("config").value("dit_steps", std::int64_t{16});
  const auto skip = to_step_skip(std::to_string(evaluated));
  options.skip = skip ? skip.value() : StepSkip::none;
  return options;
}

/// The base run's options with what a variant's name changes.
InferOptions variant_options(const GoldenDitCase& golden, const std::string& variant) {
  auto options = base_options(golden);
  if (variant == "decoupled") {
    options.decouple_noise = true;
    options.video_final_noise = golden.json.at("config").value("video_inference_final_noise", 0.8);
  } else if (variant == "dynamic") {
    options.skip = StepSkip::dynamic;
  } else {
    static const std::regex kSteps(R"(steps(\d+))");
    std::smatch match;
    EXPECT_TRUE(std::regex_match(variant, match, kSteps)) << "no test understands the variant " << variant;
    // the reference runs every step for a number it has no mask for
    const auto skip = to_step_skip(match[1].str());
    options.skip = skip ? skip.value() : StepSkip::none;
  }
  return options;
}

/// Numbers that the reference's run had, as far as the case records them; returns how many.
int expect_counts(const nlohmann::json& want, const CallRecord& got) {
  int compared = 0;
  const auto expect = [&want, &compared](const char* name, const auto& value) {
    if (want.contains(name) && !want.at(name).is_null()) {
      EXPECT_EQ(value, (want.at(name).get<std::decay_t<decltype(value)>>())) << name;
      ++compared;
    }
  };
  expect("reset", got.reset);
  expect("prefill_start_frames", got.prefill_starts);
  expect("denoise_start_frame", got.denoise_start);
  expect("kv_len_seen_by_denoiser", got.kv_seen);
  expect("kv_len_after_call", got.kv_after);
  expect("start_frame_after", got.start_after);
  expect("model_ran_at_step", got.evaluated);
  return compared;
}

/// Frames given call by call.
std::vector<std::int64_t> frames_of(const GoldenDitCase& golden) {
  const auto given = golden.json.at("config").value("frames_per_call", std::vector<std::int64_t>{});
  if (!given.empty() || !golden.json.contains("calls")) return given;
  std::vector<std::int64_t> frames;
  for (const auto& call : golden.json.at("calls")) frames.push_back(call.at("frames_given").get<std::int64_t>());
  return frames;
}

/// The recorded numbers of call `number`, if any.
nlohmann::json counts_of(const nlohmann::json& calls, std::int64_t number) {
  for (const auto& call : calls) {
    if (call.value("call", std::int64_t{0}) == number) return call;
  }
  return nlohmann::json::object();
}

double tolerance_of(const GoldenDitCase& golden, const std::string& name) {
  // without a measured tolerance: three times what the released cases need at most
  constexpr double kUnmeasured = 2e-4;
  const auto table = golden.json.value("recommended_abs_tolerance", nlohmann::json::object());
  return table.value(name, kUnmeasured);
}

/// Every output of the call that the case holds; returns how many.
int expect_tensors(const GoldenDitCase& golden, const std::string& prefix, const CallRecord& got) {
  int compared = 0;
  for (const auto& [name, want] : testing::with_prefix(golden.out, prefix)) {
    const auto full = prefix + name;
    const auto it = got.tensors.find(name);
    if (it == got.tensors.end()) {
      ADD_FAILURE() << "no test understands out." << full;
      continue;
    }
    expect_near(it->second, want, tolerance_of(golden, "out." + full), full);
    ++compared;
  }
  return compared;
}

class GoldenInferTest : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(GoldenInferTest, EveryCallMatchesTheReference) {
  const GoldenDitCase golden(GetParam());
  GoldenInferRun run(golden, base_options(golden));
  const auto frames = frames_of(golden);
  int compared = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const auto number = static_cast<std::int64_t>(i) + 1;
    SCOPED_TRACE("call " + std::to_string(number));
    const auto got = run.call(number, frames[i]);
    compared += expect_counts(counts_of(golden.json.value("calls", nlohmann::json::array()), number), got);
    compared += expect_tensors(golden, "call" + std::to_string(number) + ".", got);
  }
  EXPECT_GT(compared, 0) << "the case has no output to compare";
}

TEST_P(GoldenInferTest, EveryVariantMatchesTheReference) {
  const GoldenDitCase golden(GetParam());
  const auto variants = golden.json.value("variants", nlohmann::json::object());
  if (variants.empty()) GTEST_SKIP() << GetParam().name << " has no variants";
  const auto frames = frames_of(golden);
  for (const auto& [variant, wanted_calls] : variants.items()) {
    SCOPED_TRACE(variant);
    GoldenInferRun run(golden, variant_options(golden, variant));
    int compared = 0;
    for (const auto& want : wanted_calls) {
      const auto number = want.at("call").get<std::int64_t>();
      SCOPED_TRACE("call " + std::to_string(number));
      const auto got = run.call(number, frames.at(static_cast<std::size_t>(number - 1)));
      compared += expect_counts(want, got);
      compared += expect_tensors(golden, variant + ".call" + std::to_string(number) + ".", got);
    }
    EXPECT_GT(compared, 0) << "the variant has no output to compare";
  }
}

/// Which frames the reference's encoders saw.
TEST_P(GoldenInferTest, FramesAreChosenAsTheReferenceChoosesThem) {
  const GoldenDitCase golden(GetParam());
  const auto& config = golden.json.at("config");
  const CallProtocol protocol{config.at("nfpb").get<std::int64_t>(), config.at("max_chunk_size").get<std::int64_t>(),
                              4};
  if (golden.json.contains("derived")) {
    EXPECT_EQ(protocol.window_frames(), golden.json.at("derived").value("window_frames", protocol.window_frames()));
  }
  int compared = 0;
  for (const auto& want : golden.json.value("calls", nlohmann::json::array())) {
    const auto frames = want.value("frames_given", std::int64_t{1});
    SCOPED_TRACE(std::to_string(frames) + " frames");
    const auto condition = want.value("conditioning_image_is_frame", nlohmann::json());
    if (condition.is_number_integer()) {
      EXPECT_EQ(CallProtocol::condition_frame(frames), condition.get<std::int64_t>());
      ++compared;
    }
    const auto clip = want.value("vae_input_frames", nlohmann::json());
    if (clip.is_array()) {
      EXPECT_EQ(protocol.clip_of(frames), clip.get<std::vector<std::int64_t>>());
      ++compared;
    }
  }
  if (compared == 0) GTEST_SKIP() << GetParam().name << " does not say which frames were encoded";
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenInferTest, ::testing::ValuesIn(golden_cases("dit", "infer")), golden_case_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenInferTest);

}  // namespace
}  // namespace troupe::model
