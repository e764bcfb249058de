// One learner step of the DiT: Troupe's sharded engine over thread ranks against the same model as one plain LibTorch
// autograd program on the same cores. Expect 1 rank within a few per cent of plain with one thread (the same
// arithmetic, plus copies into slots), and 2 ranks at or below plain with two threads, because each rank's small
// operators need no fork and join. Goal: sharded / plain <= 1.15 per sample.
//     learner_step [--job FILE] [--micro 4] [--steps 10] [--rounds 7] [--out RESULT.md] [key=value ...]
// Exit 1 when the two do not train alike (losses of the first steps differ by more than 1e-4): then no time means
// anything.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "base/random.h"
#include "base/stopwatch.h"
#include "bench/model/learner_step_report.h"
#include "bench/model/plain_trainer.h"
#include "bench/model/sharded_trainer.h"
#include "bench/support/failures.h"
#include "configs/loader.h"
#include "data/sample/sample.h"
#include "workers/learner/engine_options.h"
#include "workers/learner/sft_task.h"

namespace troupe::bench {
namespace {

constexpr int kWarmUp = 2;
constexpr double kLossTolerance = 1e-4;  // sums run in another order, and five updates carry that on

struct Options {
  std::string job = "presets/dreamzero_tiny.yaml", out;
  int micro = 4, steps = 10, rounds = 7;
  bool is_short = false;
  std::vector<std::string> overrides;
};

/// A slot as a decoder fills it, with random frames, text, states and actions keyed by position.
std::vector<std::byte> random_slot(const SampleLayout& layout, const JobConfig& job, std::int64_t position) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(layout.bytes));
  const std::span<std::byte> slot(bytes);
  for (const auto& field : layout.fields) {
    CounterRng rng(static_cast<std::uint64_t>(job.job.seed), 1000,
                   static_cast<std::uint64_t>(position * 16) + field.name.size());
    const bool is_flag = field.name.ends_with("mask") || field.name == "has_real_action";
    if (field.type == FieldType::u8) {
      for (auto& x : field_values<std::uint8_t>(slot, field))
        x = is_flag ? 1 : static_cast<std::uint8_t>(rng.below(256));
    } else if (field.type == FieldType::f32) {
      for (auto& x : field_values<float>(slot, field)) x = static_cast<float>(rng.uniform(-1, 1));
    } else {
      const auto vocabulary = static_cast<std::uint32_t>(job.model.text_encoder.vocab);
      for (auto& x : field_values<std::int64_t>(slot, field))
        x = is_flag ? 1 : field.name == "text" ? rng.below(vocabulary) : 0;
    }
  }
  return bytes;
}

/// Batches as the learner would make them from decoded samples; made before anything is timed.
std::vector<Batch> make_batches(SftTask& task, const JobConfig& job, int count, int samples) {
  const auto layout = must(sample_layout(job.data, job.model));
  std::vector<Batch> batches;
  for (int b = 0; b < count; ++b) {
    std::vector<std::vector<std::byte>> slots;
    std::vector<Feed::Sample> taken;
    for (int i = 0; i < samples; ++i) slots.push_back(random_slot(layout, job, b * samples + i));
    for (int i = 0; i < samples; ++i) {
      taken.push_back(
          {.position = b * samples + i, .bytes = slots[static_cast<std::size_t>(i)], .xxh3 = 0, .void_reason = {}});
    }
    batches.push_back(must(task.train_batch(taken)));
  }
  return batches;
}

Phase run_plain(PlainTrainer& trainer, const std::vector<Batch>& batches, int threads, int warm_up, int steps,
                double lr) {
  using Clock = std::chrono::steady_clock;
  at::set_num_threads(threads);
  for (int i = 0; i < warm_up; ++i) trainer.step(batches[static_cast<std::size_t>(i) % batches.size()], lr);
  Phase phase;
  const auto begin = Clock::now();
  for (int i = 0; i < steps; ++i)
    phase.losses.push_back(trainer.step(batches[static_cast<std::size_t>(i) % batches.size()], lr));
  phase.seconds = seconds_since(begin);
  return phase;
}

Comparison compare(const JobConfig& job, const Options& options, int world) {
  auto task = must(SftTask::make(job));
  const int samples = options.micro * world;
  const auto batches = make_batches(*task, job, 3, samples);
  const auto engine = job_engine_options(job);
  const auto seed = static_cast<std::uint64_t>(job.job.seed);
  ShardedTrainer sharded(task->network(), world, engine, seed);
  PlainTrainer plain(task->network(), seed, engine.adamw, engine.clip_grad_norm);

  const double lr = job.optimizer.lr;
  const char* s = world > 1 ? "s" : "";
  Comparison result{fmt::format("{} rank{} of 1 thread, plain with {} thread{}", world, s, world, s)};
  const auto ours = sharded.run(batches, 0, kComparedSteps, lr).losses;
  const auto theirs = run_plain(plain, batches, world, 0, kComparedSteps, lr).losses;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double gap = std::abs(ours[i] - theirs[i]) / std::abs(theirs[i]);
    if (!(gap <= result.largest_loss_gap)) result.largest_loss_gap = gap;  // keeps a NaN
  }
  if (!(result.largest_loss_gap <= kLossTolerance)) return result;

  const auto ms = [&](const Phase& phase) { return phase.seconds * 1e3 / options.steps / samples; };
  const auto run_sharded = [&] {
    result.sharded_ms.values.push_back(ms(sharded.run(batches, kWarmUp, options.steps, lr)));
  };
  for (int round = 0; round < options.rounds; ++round) {
    if (round % 2 == 0) run_sharded();
    result.plain_ms.values.push_back(ms(run_plain(plain, batches, world, kWarmUp, options.steps, lr)));
    if (round % 2 == 1) run_sharded();
  }
  return result;
}

int run(const Options& options, const std::string& command) {
  const auto loaded = load_job(options.job, options.overrides);
  for (const auto& error : loaded.errors) fmt::print(stderr, "{}\n", error);
  if (!loaded.config) return 2;
  std::vector<Comparison> comparisons;
  for (const int world : {1, 2}) {
    comparisons.push_back(compare(loaded.config->job, options, world));
    const auto& c = comparisons.back();
    if (c.largest_loss_gap <= kLossTolerance) continue;
    fmt::print(stderr, "{}: losses differ by {:.2e}, wanted at most {:.0e}\n", c.name, c.largest_loss_gap,
               kLossTolerance);
    return 1;
  }
  fmt::print("{}", to_table(comparisons));
  write_result(options.out, to_markdown(comparisons, command, *loaded.config));
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  troupe::bench::Options options;
  CLI::App app{"One learner step: sharded engine against plain autograd"};
  app.add_option("--job", options.job, "job file or embedded preset");
  app.add_option("--micro", options.micro, "samples a rank")->check(CLI::PositiveNumber);
  app.add_option("--steps", options.steps, "timed steps of a phase")->check(CLI::PositiveNumber);
  app.add_option("--rounds", options.rounds, "phases of each kind")->check(CLI::PositiveNumber);
  app.add_option("--out", options.out, "result file (Markdown)")->check(troupe::bench::refuse_dirty_tree);
  app.add_flag("--short", options.is_short, "one short round: checks that the benchmark still runs");
  app.add_option("overrides", options.overrides, "key=value");
  CLI11_PARSE(app, argc, argv);
  if (options.is_short) options.rounds = 1, options.steps = 2, options.micro = 1;
  return troupe::bench::exit_status("bench_model_learner_step", 2, [&] {
    return troupe::bench::run(options, troupe::bench::command_line("bench_model_learner_step", argc, argv));
  });
}
