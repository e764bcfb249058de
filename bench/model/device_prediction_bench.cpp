// What `troupe plan` predicts of fine-tuning DreamZero on eight GPUs, and what each of its means is predicted to give:
// CUDA graphs, fused kernels, recompute, encoders in batches, cached text, the rate of attention. Nothing of it was
// measured: every number is a prediction at assumed rates (docs/learner-engine.md#on-devices).
// Then what its policy calls are predicted to take there.
//     bench_model_device_prediction [--out RESULT.md]
#include <fmt/format.h>

#include <string>

#include "bench/model/call_prediction.h"
#include "bench/support/bench_options.h"
#include "bench/support/failures.h"
#include "configs/loader.h"
#include "kernels/product.h"
#include "model/wan/encoder_cost.h"
#include "model/wan/infer/call_kernels.h"
#include "model/wan/model_cost.h"
#include "placement/pretend.h"
#include "workers/pipeline/model_cost.h"
#include "workers/pipeline/planned_kernels.h"
#include "workers/pipeline/step_prediction.h"

namespace troupe::bench {
namespace {

/// Rows of the width that eager operations of the published code read and write a token of a block, beside products and
/// attention, forward and backward: an estimate from reading that code.
constexpr double kEagerForwardRows = 190, kEagerBackwardRows = 520;
/// Samples of a micro-batch for which they are compared.
constexpr std::int64_t kRowSamples = 16;
/// FLOP/s of frozen encoders: many samples a call, and one.
constexpr double kBatchedEncoders = 300e12, kSingleEncoders = 100e12;

struct Model {
  std::string name, recipe;
  /// samples/s of a GPU that RLinf publishes for eight H100
  double published = 0;
};
const Model kFive{"5B", "recipes/dreamzero_5b_droid.yaml", 4.44},
    kFourteen{"14B", "recipes/dreamzero_14b_droid.yaml", 0.150};

/// One change to what the recipe says, or to what is assumed.
struct Change {
  std::string what;
  std::vector<std::string> overrides = {};
  AdjustRates adjust = {};
  bool is_fused = true;
  /// FLOP/s of the encoders where they run on the same GPUs; 0: features come from the cache
  double encoders = 0;
  bool cached_text = true;
};

/// Rows that the kernels of a block beside products and attention read and write a token, in bf16 and with nothing
/// recomputed.
double rows_of(const std::vector<KernelWork>& kernels, double row_bytes) {
  double bytes = 0;
  for (const KernelWork& work : kernels) {
    if (!is_product(work.family) && !is_attention(work.family)) bytes += work.calls * work.bytes;
  }
  return bytes / row_bytes;
}

/// Of a block, a token: forward and backward.
std::pair<double, double> rows_of(const JobConfig& job) {
  const auto tokens = dit_cost(job.model, job.data.window, 2).executed_tokens;
  const auto row_bytes = 2.0 * static_cast<double>(kRowSamples * tokens * job.model.dit.dim);
  const std::vector none{RecomputeLevel::none};
  const auto block = unit_kernels(job.model, job.data.window, at::kBFloat16, kRowSamples, none).at(1);
  return {rows_of(block.forward, row_bytes), rows_of(block.backward, row_bytes)};
}

void scale(std::vector<KernelWork>& kernels, double factor) {
  for (KernelWork& work : kernels) {
    if (!is_product(work.family) && !is_attention(work.family)) work.bytes *= factor;
  }
}

/// Seconds of the same plan's step with the traffic of eager operations.
double seconds_without_fusion(const JobConfig& job, const PredictedPlan& planned) {
  const auto [forward, backward] = rows_of(job);
  const StepPrediction& prediction = planned.prediction;
  DeviceStep step{.units = planned_kernels(job, planned.plan, "native"), .graphs = job.training.cuda_graphs};
  for (UnitKernels& unit : step.units)
    scale(unit.forward, kEagerForwardRows / forward), scale(unit.backward, kEagerBackwardRows / backward);
  const auto times_of = [&](const Op& op) {
    return seconds_on_device(op, *prediction.step.plan, step, prediction.rates);
  };
  return time_step(prediction.step.operations, times_of, StreamSharing::beside).seconds;
}

JobConfig load(const Model& model, const std::vector<std::string>& overrides = {}) {
  const LoadOutcome loaded = load_job(model.recipe, overrides);
  if (!loaded.config) throw std::runtime_error(loaded.errors.front());
  return loaded.config->job;
}

/// samples/s of a GPU, by the fastest plan.
double predicted(const Model& model, const std::string& cluster, const Change& change) {
  const JobConfig job = load(model, change.overrides);
  const auto cost = must(model_cost(job, {}));
  const auto plans = must(predicted_plans(must(pretend_cluster(cluster)), job, cost, change.adjust));
  if (plans.empty()) throw std::runtime_error(fmt::format("{} does not fit {}: {}", model.name, cluster, change.what));
  const StepPrediction& best = plans.front().prediction;
  double seconds = 1 / best.samples_per_second;
  if (!change.is_fused) seconds *= seconds_without_fusion(job, plans.front()) / best.timing.seconds;
  if (change.encoders > 0) {
    const EncoderCost encoders = encoder_cost(job.model, job.data.window, 2);
    seconds += (encoders.flops() - (change.cached_text ? encoders.text_flops : 0)) / change.encoders;
  }
  return 1 / seconds;
}

std::vector<Change> changes() {
  return {{.what = "as the recipe says: graphs, fused kernels, recompute `auto`, features from the cache"},
          {.what = "without graphs", .overrides = {"training.cuda_graphs=false"}},
          {.what = "without fused kernels", .is_fused = false},
          {.what = "without either", .overrides = {"training.cuda_graphs=false"}, .is_fused = false},
          {.what = "recompute `full` in place of `auto`", .overrides = {"activation_checkpoint.mode=full"}},
          {.what = "encoders on the same GPUs, in batches, text from the cache", .encoders = kBatchedEncoders},
          {.what = "the same, text not from the cache", .encoders = kBatchedEncoders, .cached_text = false},
          {.what = "encoders on the same GPUs, one sample a call, text from the cache", .encoders = kSingleEncoders}};
}

AdjustRates attention_at(double rate) {
  return [rate](const RatesFor&, DeviceRates& rates) { rates.attention = rate; };
}

std::vector<std::string> clusters_of(bool is_short) {
  return is_short ? std::vector<std::string>{"8xH200"} : std::vector<std::string>{"8xH100", "8xH200"};
}
std::vector<Model> models_of(bool is_short) { return is_short ? std::vector{kFive} : std::vector{kFive, kFourteen}; }

std::string table_of(bool is_short) {
  const auto clusters = clusters_of(is_short);
  const auto models = models_of(is_short);
  std::string head = "| predicted samples/s of a GPU |", line = "|---|";
  for (const Model& model : models) {
    for (const std::string& cluster : clusters) head += fmt::format(" {}, {} |", model.name, cluster), line += "---|";
  }
  std::string table = head + "\n" + line + "\n";
  for (const Change& change : changes()) {
    table += "| " + change.what + " |";
    for (const Model& model : models) {
      for (const std::string& cluster : clusters) table += fmt::format(" {:.3g} |", predicted(model, cluster, change));
    }
    table += "\n";
  }
  for (const double rate : {150e12, 260e12, 450e12}) {
    if (is_short) break;
    table += fmt::format("| attention at {:.0f} TFLOP/s |", rate / 1e12);
    for (const Model& model : models) {
      for (const std::string& cluster : clusters)
        table += &model == &models.front()
                     ? " |"
                     : fmt::format(" {:.3g} |", predicted(model, cluster, {.what = "", .adjust = attention_at(rate)}));
    }
    table += "\n";
  }
  table += "| published for RLinf, eight H100 |";
  for (const Model& model : models) {
    for (const std::string& cluster : clusters)
      table += cluster == "8xH100" ? fmt::format(" {:.3g} (measured by them) |", model.published) : " |";
  }
  table += "\n";
  for (const Model& model : models) {
    const auto [forward, backward] = rows_of(load(model));
    table += fmt::format(
        "\n{}: a block moves {:.0f} rows a token forward and {:.0f} backward, eager operations {:.0f} and {:.0f}.",
        model.name, forward, backward, kEagerForwardRows, kEagerBackwardRows);
  }
  return table + "\n";
}

/// Denoising steps of a call, as the released policies run, and those that the published server evaluates.
constexpr int kSteps = 16, kEvaluatedSteps = 8;
/// ms of a policy call's transformer in the middle of a window, at the rates that the model's training is planned with.
double call_milliseconds(const Model& model, const std::string& cluster, std::int64_t robots, int steps, bool graphs) {
  const JobConfig job = load(model);
  const auto plans = must(predicted_plans(must(pretend_cluster(cluster)), job, must(model_cost(job, {}))));
  const CallKernels kernels = call_kernels(
      job.model, job.data.window, at::kBFloat16,
      {.robots = robots, .branches = 2, .seen_blocks = job.data.window.chunks / 2, .prompt_rows = kPromptRows});
  const auto seconds = [&](const std::vector<std::vector<KernelWork>>& programs) {
    return predicted_seconds(programs, graphs, plans.front().prediction.rates);
  };
  return 1e3 * (seconds(kernels.prefill) + steps * seconds(kernels.step));
}

std::string call_table(bool is_short) {
  const auto clusters = clusters_of(is_short);
  const auto models = models_of(is_short);
  std::string head = "| predicted ms of a policy call's transformer on one GPU |", line = "|---|";
  for (const Model& model : models) {
    for (const std::string& cluster : clusters)
      head += fmt::format(" {}, {} |", model.name, cluster.substr(2)), line += "---|";
  }
  std::string table = head + "\n" + line + "\n";
  const auto add = [&](const std::string& what, std::int64_t robots, int steps, bool graphs) {
    table += "| " + what + " |";
    for (const Model& model : models) {
      for (const std::string& cluster : clusters)
        table += fmt::format(" {:.0f} |", call_milliseconds(model, cluster, robots, steps, graphs));
    }
    table += "\n";
  };
  add(fmt::format("one robot, {} steps with guidance, by graphs", kSteps), 1, kSteps, true);
  add("the same, kernel by kernel", 1, kSteps, false);
  add(fmt::format("one robot, {} of {} steps evaluated", kEvaluatedSteps, kSteps), 1, kEvaluatedSteps, true);
  add(fmt::format("four robots in one call, {} steps", kSteps), 4, kSteps, true);
  return table;
}

std::string page_of(const std::string& table, const std::string& calls, const std::string& command) {
  return fmt::format(
      R"(# Fine-tuning DreamZero on eight GPUs: predicted

**Nothing here was measured on a GPU**, but the last row, which RLinf publishes. Each number is what the fastest plan is
predicted to reach at the rates that docs/learner-engine.md assumes of such GPUs. Encoders are assumed to run at {:.0f} TFLOP/s
in batches and at {:.0f} one by one. Rows are what a block reads and writes beside products and attention, in rows of the width;
those of eager operations are an estimate from reading the published code.

{}
## A policy call
In bf16, in the middle of a window, with prompts of {} rows, at the rates of training, which small products may not
reach. Encoders and codec, which `troupe serve` runs on cores, the sampler and copies to and from the host are not in it.
Published for the 14B's call as a whole: about 3 s on two H100; its server evaluates {} of {} steps unless it is told
otherwise.

{}
{})",
      kBatchedEncoders / 1e12, kSingleEncoders / 1e12, table, kPromptRows, kEvaluatedSteps, kSteps, calls,
      provenance(command, ""));
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  std::string out;
  bool is_short = false;
  CLI::App app{"What a plan predicts of fine-tuning on eight GPUs, with and without each of its means"};
  troupe::bench::add_result_options(app, out, is_short);
  CLI11_PARSE(app, argc, argv);
  return troupe::bench::exit_status("bench_model_device_prediction", 2, [&] {
    // as on a device
    troupe::kernels::set_product_form(troupe::kernels::ProductForm::native);
    const std::string table = troupe::bench::table_of(is_short);
    const std::string calls = troupe::bench::call_table(is_short);
    fmt::print("{}\n{}", table, calls);
    const std::string command = troupe::bench::command_line("bench_model_device_prediction", argc, argv);
    troupe::bench::write_result(out, troupe::bench::page_of(table, calls, command));
    return 0;
  });
}
