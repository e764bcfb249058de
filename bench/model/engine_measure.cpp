#include "bench/model/engine_measure.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>

#include "base/stopwatch.h"
#include "bench/model/plain_trainer.h"
#include "bench/model/sharded_trainer.h"
#include "bench/model/step_products.h"
#include "bench/model/tensor_memory.h"
#include "kernels/product.h"

namespace troupe::bench {
namespace {

constexpr int kComparedSteps = 3;
constexpr double kRate = 1e-5;

EngineOptions engine_options(const EngineSetup& setup, bool recompute) {
  EngineOptions options;
  options.param_dtype = setup.dtype;
  options.recompute = {recompute ? RecomputeLevel::full : RecomputeLevel::none};
  return options;
}

/// Each rank's samples.
std::vector<Batch> split(const Batch& batch, int ranks) {
  std::vector<Batch> parts(static_cast<std::size_t>(ranks));
  for (const auto& [name, tensor] : batch) {
    const auto samples = tensor.size(0) / ranks;
    for (int r = 0; r < ranks; ++r) {
      parts[static_cast<std::size_t>(r)][name] = tensor.narrow(0, r * samples, samples).contiguous();
    }
  }
  return parts;
}

/// One setup's programs, and what they have given so far.
class Measurement {
 public:
  Measurement(const EngineSetup& setup, const MeasureOptions& options)
      : options_(options), times_{.setup = setup, .ours = our_rows(setup, options.only)} {
    auto size = setup.size;
    case_ = make_dit_case(size, at::kFloat);
    size.samples = setup.samples();
    batches_ = split(make_dit_batch(size, setup.dtype), setup.ranks);
    times_.parameters = case_.parameters;
    ours_.resize(times_.ours.size());
  }

  EngineTimes run() {
    if (options_.ours_alone || times_.setup.compares_steps) {
      for (std::size_t i = 0; i < ours_.size(); ++i) step_ours(i, options_.ours_alone ? 1 : kComparedSteps, threads());
      if (!options_.ours_alone) step_plain(kComparedSteps);
      compare();
    }
    if (!options_.ours_alone) choose_products();
    std::vector<std::function<void()>> programs;
    for (std::size_t i = 0; i < ours_.size(); ++i) programs.emplace_back([this, i] { time_ours(i); });
    if (!options_.ours_alone) {
      programs.emplace_back([this] { time_all_products(); });
      programs.emplace_back([this] { time_plain(); });
    }
    for (int round = 0; round < options_.rounds; ++round) {
      // a slow minute of the machine meets all of them, in turn from either end
      if (round > 0) std::reverse(programs.begin(), programs.end());
      for (const auto& program : programs) {
        program();
        if (times_.setup.one_at_a_time) forget_trainers();
      }
    }
    compare();
    return std::move(times_);
  }

 private:
  int threads() const { return times_.setup.threads; }
  double per_sample_ms(double seconds, int steps) const {
    return seconds * 1e3 / steps / static_cast<double>(times_.setup.samples());
  }

  void forget_trainers() {
    for (auto& trainer : ours_) trainer.reset();
    plain_.reset();
  }

  Phase step_ours(std::size_t i, int steps, int threads) {
    const auto& setup = times_.setup;
    const bool is_warm = ours_[i] != nullptr;
    if (!is_warm) {
      ours_[i] = std::make_unique<ShardedTrainer>(case_.network, setup.ranks,
                                                  engine_options(setup, times_.ours[i].recompute), case_.weights);
    }
    auto phase = ours_[i]->run(batches_, steps, kRate, threads);
    auto& row = times_.ours[i];
    row.losses.insert(row.losses.end(), phase.losses.begin(), phase.losses.end());
    row.bytes = std::max(row.bytes, ours_[i]->bytes() + phase.tensors.peak_bytes);
    if (is_warm) {
      row.warm = fmt::format("{} | {} | {}", phase.tensors.allocations / steps,
                             phase.tensors.attention_allocations / steps, phase.minor_faults / steps);
    }
    return phase;
  }
  double step_plain(int steps) {
    if (!plain_) {
      const auto same = engine_options(times_.setup, false);
      plain_ = std::make_unique<PlainTrainer>(case_, times_.setup.dtype, same.adamw, same.clip_grad_norm);
    }
    at::set_num_threads(times_.setup.cores());
    const auto begin = std::chrono::steady_clock::now();
    const auto use = tensor_use([&] {
      for (int i = 0; i < steps; ++i) plain_losses_.push_back(plain_->step(batches_, kRate));
    });
    const double seconds = seconds_since(begin);
    times_.plain_bytes = std::max(times_.plain_bytes, plain_->bytes() + use.peak_bytes);
    return seconds;
  }

  void time_ours(std::size_t i) {
    const int steps = times_.setup.steps;
    auto& row = times_.ours[i];
    const auto phase = step_ours(i, steps, threads());
    row.ms.values.push_back(per_sample_ms(phase.seconds, steps));
    row.update_ms.values.push_back(per_sample_ms(phase.update_s, steps));
    if (!times_.setup.compares_threads || options_.ours_alone) return;
    row.one_thread_ms.values.push_back(per_sample_ms(step_ours(i, steps, 1).seconds, steps));
  }
  void time_plain() {
    const int steps = times_.setup.steps;
    times_.plain_ms.values.push_back(per_sample_ms(step_plain(steps), steps));
  }
  void time_all_products() {
    const auto seconds = time_products(products_, times_.setup.cores());
    const auto ms = [&](double all) { return all * 1e3 / static_cast<double>(times_.setup.size.samples); };
    times_.linear_ms.values.push_back(ms(seconds.linear));
    times_.attention_ms.values.push_back(ms(seconds.attention));
    times_.products_ms.values.push_back(ms(seconds.all()));
  }

  /// In bf16 each form runs once, and the faster is the one that counts.
  void choose_products() {
    products_ = step_products(case_, batches_.front());
    times_.products = describe(products_);
    if (times_.setup.dtype == at::kFloat) return;
    auto native = in_dtype(products_, times_.setup.dtype);
    const auto native_s = time_products(native, times_.setup.cores()).all();
    const auto widened_s = time_products(products_, times_.setup.cores()).all();
    if (native_s < widened_s) products_ = std::move(native);
    times_.products =
        fmt::format("{}; {} (tried once: native {:.2f} s, widened {:.2f} s); ours {}", describe(products_),
                    native_s < widened_s ? "native" : "widened", native_s, widened_s, enum_name(product_form()));
  }

  void compare() {
    const double tolerance = times_.setup.dtype == at::kFloat ? 1e-4 : 2e-2;
    for (const auto& row : times_.ours) {
      for (std::size_t i = 0; i < std::min(row.losses.size(), plain_losses_.size()); ++i) {
        const double gap = std::abs(row.losses[i] - plain_losses_[i]) / std::abs(plain_losses_[i]);
        if (!(gap <= tolerance)) {
          throw LossesDiffer(fmt::format("{}, step {}: loss {} and plain {} differ by {:.1e}, wanted at most {:.0e}",
                                         row.name, i + 1, row.losses[i], plain_losses_[i], gap, tolerance));
        }
        times_.largest_loss_gap = std::max(times_.largest_loss_gap, gap);
      }
    }
  }

  const MeasureOptions options_;
  DitCase case_;
  std::vector<Batch> batches_;  ///< of each rank
  std::vector<std::unique_ptr<ShardedTrainer>> ours_;
  std::unique_ptr<PlainTrainer> plain_;
  std::vector<Product> products_;
  std::vector<double> plain_losses_;
  EngineTimes times_;
};

}  // namespace

std::vector<OurTimes> our_rows(const EngineSetup& setup, const std::string& only) {
  std::vector<OurTimes> rows;
  for (const bool recompute : {true, false}) {
    OurTimes row{.name = setup.name + (recompute ? "-L3" : "-keep"), .recompute = recompute};
    if (row.name.find(only) != std::string::npos) rows.push_back(std::move(row));
  }
  return rows;
}

EngineTimes measure(const EngineSetup& setup, const MeasureOptions& options) {
  return Measurement(setup, options).run();
}

}  // namespace troupe::bench
