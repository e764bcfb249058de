#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "model/loss/rl_keys.h"
#include "model/policy/policy_net.h"
#include "tests/support/visible.h"

namespace troupe::testing {

/// A policy that a reader can compute by hand: actions are the draw of the row's key against the first weight (or, of
/// continuous ones, the draw plus it), logp is that draw, the value is weight times the sum of the state. One extra:
/// the row's first draw in thousandths, i64. With a memory it counts the steps of an episode, and the value is how many
/// lie before this one.
class ScriptedNet final : public PolicyNet {
 public:
  struct Options {
    std::int64_t actions = 1;  ///< K*A
    std::int64_t choices = 2;  ///< 0: continuous
    bool has_value = true;
    bool has_extra = false;
    bool has_memory = false;
    std::int64_t pad = 3;               ///< further weights, so that the unit has several elements
    at::ScalarType dtype = at::kFloat;  ///< of what acts
    std::chrono::nanoseconds takes{};   ///< an act() computes for as long
  };
  explicit ScriptedNet(Options options) : options_(options) {
    units_ = {{.name = "actor",
               .layout_class = "actor",
               .params = {{"w", {1 + options.pad}, {}}, {"b", {2}, {}}},
               .group = "actor"},
              {.name = "loss", .layout_class = "loss", .params = {}, .group = "actor"}};
    if (options_.has_memory) memory_ = {{.name = "steps", .width = 1}};
    if (options_.has_extra) extras_ = {{.name = "mark", .shape = {2}, .is_integer = true}};
  }
  const std::vector<UnitSpec>& units() const override { return units_; }
  const std::vector<std::string>& acting_units() const override { return acting_; }
  at::ScalarType acting_dtype() const override { return options_.dtype; }
  const std::vector<ExtraField>& extras() const override { return extras_; }
  const std::vector<MemoryField>& memory() const override { return memory_; }
  std::int64_t logp_width() const override { return options_.has_value ? options_.actions : 0; }
  std::int64_t value_width() const override { return options_.has_value ? 1 : 0; }

  ActResult act(const UnitViews& views, const ActRequest& request) const override {
    const auto end = std::chrono::steady_clock::now() + options_.takes;
    while (std::chrono::steady_clock::now() < end) {
    }
    *threads_ = at::get_num_threads();
    const float w = weight(views);
    const auto n = static_cast<std::int64_t>(request.keys.size());
    ActResult result{
        at::empty({n, options_.actions}), at::empty({n, options_.actions}), value(views, request.observation), {}};
    auto mark = at::empty({n, 2}, at::kLong);
    for (std::int64_t i = 0; i < n; ++i) {
      CounterRng rng(request.seed, 80, request.keys[static_cast<std::size_t>(i)]);
      for (std::int64_t a = 0; a < options_.actions; ++a) {
        const float draw = rng.uniform();
        result.logp[i][a] = draw;
        result.action[i][a] = options_.choices > 0 ? (draw < w ? 1.0f : 0.0f) : draw + w;
        if (a < 2) mark[i][a] = static_cast<std::int64_t>(draw * 1000);
      }
      if (options_.actions < 2) mark[i][1] = 7;
    }
    if (options_.has_extra) result.extra["mark"] = mark;
    if (options_.has_memory) result.memory["steps"] = steps(request.observation) + 1;
    return result;
  }
  at::Tensor value(const UnitViews& views, const Batch& observation) const override {
    if (options_.has_memory) return steps(observation).clone();
    return observation.at(rl_keys::kState).sum(1, /*keepdim=*/true) * weight(views);
  }
  std::shared_ptr<const Network> objective(const std::string&) const override { return nullptr; }
  /// LibTorch's in the last act().
  int threads() const { return *threads_; }

 private:
  /// [N,1]
  static at::Tensor steps(const Batch& observation) {
    return observation.at(std::string(rl_keys::kMemoryPrefix) + "steps");
  }
  static float weight(const UnitViews& views) { return views.at("actor")["w"].data_ptr<float>()[0]; }

  const Options options_;
  const std::shared_ptr<std::atomic<int>> threads_ = std::make_shared<std::atomic<int>>(0);
  std::vector<UnitSpec> units_;
  std::vector<std::string> acting_{"actor"};
  std::vector<ExtraField> extras_;
  std::vector<MemoryField> memory_;
};

}  // namespace troupe::testing
