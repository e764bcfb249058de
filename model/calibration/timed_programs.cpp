#include "model/calibration/timed_programs.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <memory>
#include <set>
#include <string>

#include "kernels/dispatch.h"
#include "kernels/threads.h"
#include "model/calibration/kernel_times.h"
#include "model/program/operations.h"
#include "model/program/unit_memory.h"
#include "model/program/unit_program.h"

namespace troupe::model {
namespace {

constexpr std::int64_t kTableRows = 4, kRank = 4;
constexpr double kEps = 1e-6;
/// Runs of a program go on for so many seconds at most, once there were a few.
constexpr double kLongest = 0.8;
constexpr int kFewestRuns = 3;

/// Records the block. Attention has all tokens, few keys and few queries in turn.
class MeasuredGraph {
 public:
  MeasuredGraph(const MeasuredBlock& block, at::ScalarType dtype)
      : block_(block), dtype_(dtype), few_(std::max<std::int64_t>(1, block.tokens / 6)) {
    const auto x = graph_.add_input({1, block.tokens, block.width}, dtype);
    const auto rows = graph_.add_conditioning(0, {1, kTableRows, 3, block.width}, dtype);
    const auto table = record_modulation(graph_, parameter("table", {1, 3, block.width}), rows, {true, false, false});
    const auto table_row = at::arange(block.tokens, at::kInt)
                               .mul(static_cast<int>(kTableRows))
                               .div(static_cast<int>(block.tokens), "floor")
                               .to(at::kInt);
    const auto h = record_modulated_norm(graph_, x, table[0], table[1], table_row, kEps);
    const auto q = rotated(linear(h, block.width, "q"), "q"), k = rotated(linear(h, block.width, "k"), "k");
    const auto all = attend(q, k, linear(h, block.width, "v"));
    const auto head = record_take_rows(graph_, h, {{0, few_}});
    const auto few_keys = attend(q, linear(head, block.width, "k_few"), linear(head, block.width, "v_few"));
    auto y = record_gated_residual(graph_, x, adapted(record_add(graph_, all, few_keys), "o"), table[2], table_row);
    const auto f = record_modulated_norm(graph_, y, table[0], table[1], table_row, kEps);
    const auto up = record_activation(graph_, linear(f, block.hidden, "up"), Activation::gelu_tanh);
    const auto down = record_linear(graph_, up, parameter("down", {block.width, block.hidden}),
                                    parameter("down.bias", {block.width}));
    y = record_gated_residual(graph_, y, down, table[2], table_row);
    // the last one reads all keys with few queries
    const auto tail = record_take_rows(graph_, y, {{block.tokens - few_, block.tokens}});
    const auto few_queries = attend(linear(tail, block.width, "q_tail"), y, y);
    graph_.add_output(record_add(graph_, tail, few_queries));
  }

  Graph take() { return std::move(graph_); }
  const std::set<std::string>& names() const { return names_; }

 private:
  ValueId parameter(const std::string& name, std::vector<std::int64_t> sizes) {
    names_.insert(name);
    return graph_.add_parameter(name, std::move(sizes), dtype_);
  }
  ValueId linear(ValueId x, std::int64_t out, const std::string& name) {
    return record_linear(graph_, x, parameter(name, {out, graph_.value(x).sizes.back()}), kNoValue);
  }
  /// With an adapter, whose products are thin.
  ValueId adapted(ValueId x, const std::string& name) {
    const auto update = linear(linear(x, kRank, name + ".a"), block_.width, name + ".b");
    return record_add_scaled(graph_, linear(x, block_.width, name), update, 1.0);
  }
  ValueId rotated(ValueId x, const std::string& name) {
    const auto half = block_.width / block_.heads / 2;
    const auto angles = at::zeros({block_.tokens, half}, at::TensorOptions().dtype(accumulate_dtype(dtype_)));
    return record_rms_norm(graph_, x, parameter(name + ".gain", {block_.width}), kEps,
                           graph_.add_constant(at::ones_like(angles)), graph_.add_constant(angles));
  }
  ValueId attend(ValueId q, ValueId k, ValueId v) {
    const auto queries = graph_.value(q).sizes[1], keys = graph_.value(k).sizes[1];
    return record_attention(graph_, q, k, v, block_.heads, {{{0, queries}, {{0, keys}}}});
  }

  const MeasuredBlock block_;
  const at::ScalarType dtype_;
  const std::int64_t few_;
  Graph graph_;
  std::set<std::string> names_;
};

/// The pass of a program that outlives the result.
std::shared_ptr<const Pass> borrowed(const Pass& pass) { return {std::shared_ptr<const Pass>(), &pass}; }

/// A pass with all its tensors, those that callers bind included.
class BoundPass {
 public:
  BoundPass(const UnitProgram& program, const Pass& pass, UnitMemory& memory,
            const std::vector<at::Tensor>& conditioning)
      : graph_(program.graph()), pass_(borrowed(pass)), memory_(memory) {
    for (const Value& value : graph_.values()) {
      const bool is_bound = value.role != ValueRole::intermediate && value.role != ValueRole::constant;
      const bool is_given = value.role == ValueRole::conditioning && value.index < conditioning.size() &&
                            conditioning[value.index].defined();
      bound_.push_back(is_given    ? conditioning[value.index]
                       : !is_bound ? at::Tensor()
                       : c10::isIntegralType(value.dtype, /*bool=*/true)
                           ? at::zeros(value.sizes, value.dtype)
                           : at::empty(value.sizes, value.dtype).uniform_(-0.1, 0.1));
    }
  }

  /// Seconds of each operation.
  std::vector<double> run() {
    auto& tensors = memory_.tensors(graph_, pass_, 0);
    for (std::size_t i = 0; i < bound_.size(); ++i) {
      if (bound_[i].defined()) tensors[i] = bound_[i];
    }
    std::vector<double> seconds;
    for (const Operation* operation : pass_->operations) {
      const auto begin = std::chrono::steady_clock::now();
      operation->run(tensors);
      seconds.push_back(seconds_since(begin));
    }
    return seconds;
  }

 private:
  const Graph& graph_;
  const std::shared_ptr<const Pass> pass_;
  UnitMemory& memory_;
  std::vector<at::Tensor> bound_;
};

}  // namespace

std::vector<TimedOperation> time_program(const UnitProgram& program, int runs,
                                         const std::vector<at::Tensor>& conditioning) {
  const at::NoGradGuard no_grad;
  UnitMemory memory;
  const std::array<const Pass*, 2> passes = {&program.forward_pass(), &program.backward_pass()};
  std::array<BoundPass, 2> bound = {BoundPass(program, *passes[0], memory, conditioning),
                                    BoundPass(program, *passes[1], memory, conditioning)};
  std::array<std::vector<std::vector<double>>, 2> seconds;
  for (std::size_t p = 0; p < passes.size(); ++p) seconds[p].resize(passes[p]->operations.size());
  const auto begin = std::chrono::steady_clock::now();
  with_team(num_threads(), [&] {
    // the first run makes the memory
    for (int run = 0; run <= runs && (run <= kFewestRuns || seconds_since(begin) < kLongest); ++run) {
      for (std::size_t p = 0; p < passes.size(); ++p) {
        const auto of_run = bound[p].run();
        for (std::size_t i = 0; run > 0 && i < of_run.size(); ++i) seconds[p][i].push_back(of_run[i]);
      }
    }
  });
  std::vector<TimedOperation> timed;
  for (std::size_t p = 0; p < passes.size(); ++p) {
    for (std::size_t i = 0; i < seconds[p].size(); ++i) {
      TimedOperation& one = timed.emplace_back(TimedOperation{{}, median_of(seconds[p][i])});
      passes[p]->operations[i]->add_work(program.graph(), one.work);
    }
  }
  return timed;
}

std::vector<TimedOperation> time_block(const MeasuredBlock& block, at::ScalarType dtype, int runs) {
  MeasuredGraph recorded(block, dtype);
  const std::set<std::string> names = recorded.names();
  return time_program(UnitProgram(recorded.take(), {names, {}}, RecomputeLevel::none), runs);
}

}  // namespace troupe::model
