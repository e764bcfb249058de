#include "bench/model/sharded_trainer.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <sys/resource.h>

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

#include "base/stopwatch.h"
#include "bench/support/failures.h"
#include "comm/collective/nccl_group.h"
#include "kernels/threads.h"
#include "model/shard/named_state.h"

namespace troupe::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{300};

/// Of this process so far: pages that the kernel had to give it or find.
std::int64_t minor_faults() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

/// Tensors in memory as an engine's first state.
class InMemoryWeights final : public NamedState {
 public:
  InMemoryWeights(std::vector<UnitSpec> units, const NamedTensors& weights)
      : NamedState(std::move(units), 0), weights_(weights) {}

 private:
  bool contains(const std::string& name) const override { return weights_.count(name) != 0; }
  Result<void> read_tensor(const std::string& name, std::int64_t begin, std::int64_t count, float* out) const override {
    std::copy_n(weights_.at(name).const_data_ptr<float>() + begin, count, out);
    return {};
  }

  const NamedTensors& weights_;
};

}  // namespace

ShardedTrainer::ShardedTrainer(const std::shared_ptr<const Network>& network, int world, const EngineOptions& options,
                               const NamedTensors& weights, std::span<const kernels::ComputeDevice> devices)
    : ranks_(static_cast<std::size_t>(world)) {
  const auto group = make_thread_group(world, kPatience);
  for (std::size_t r = 0; r < ranks_.size(); ++r) ranks_[r].group = join_thread_group(group, static_cast<int>(r));
  run_ranks([&](std::size_t r) {
    Rank& rank = ranks_[r];
    const kernels::ComputeDevice* own = devices.empty() ? nullptr : &devices[r];
    device::Device& device = own == nullptr ? device::host_device() : *own->device;
    if (own != nullptr && world > 1) rank.group = must(join_nccl_group(std::move(rank.group), device, kPatience));
    rank.engine = std::make_unique<Engine>(network, options, device, own == nullptr ? nullptr : own->kernels.get());
    must(rank.engine->attach(*rank.group));
    must(rank.engine->load(InMemoryWeights(rank.engine->units(), weights)));
  });
}

void ShardedTrainer::step(Rank& rank, const Batch& batch, double lr, int accumulation, Phase& phase) const {
  const double weight = 1.0 / static_cast<double>(ranks_.size() * static_cast<std::size_t>(accumulation));
  for (int i = 0; i < accumulation; ++i) must(rank.engine->enqueue(batch, weight, /*first=*/i == 0));
  auto computed = Clock::now();
  const auto numbers = [&](const std::vector<MicroResult>& results) {
    computed = Clock::now();
    double loss = 0;
    for (const MicroResult& micro : results) loss += micro.loss;
    return StepNumbers{.sums = {weight * loss}, .maxima = {}};
  };
  const auto vote = must(rank.engine->finish_step(lr, numbers));
  phase.update_s += seconds_since(computed);
  phase.losses.push_back(vote.sums.at(0));
}

void ShardedTrainer::run_ranks(const std::function<void(std::size_t)>& body) {
  std::vector<std::exception_ptr> failures(ranks_.size());
  std::vector<std::thread> running;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    running.emplace_back([&, r] {
      try {
        body(r);
      } catch (...) {
        failures[r] = std::current_exception();
        if (ranks_[r].group) ranks_[r].group->abort("a rank of the benchmark failed");
      }
    });
  }
  for (auto& thread : running) thread.join();
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

Phase ShardedTrainer::run(const std::vector<Batch>& batches, int steps, double lr, int threads, int accumulation) {
  std::vector<Phase> phases(ranks_.size());
  run_ranks([&](std::size_t r) {
    at::set_num_threads(1);
    kernels::set_num_threads(threads);
    Rank& rank = ranks_[r];
    must(rank.group->barrier());
    const auto begin = Clock::now();
    const std::int64_t faults = minor_faults();
    phases[r].tensors = tensor_use([&] {
      for (int i = 0; i < steps; ++i) step(rank, batches.at(r), lr, accumulation, phases[r]);
    });
    must(rank.group->barrier());
    phases[r].seconds = seconds_since(begin);
    phases[r].minor_faults = minor_faults() - faults;
  });
  for (std::size_t r = 1; r < phases.size(); ++r) {
    phases[0].tensors.peak_bytes += phases[r].tensors.peak_bytes;
    phases[0].tensors.allocations += phases[r].tensors.allocations;
    phases[0].tensors.attention_allocations += phases[r].tensors.attention_allocations;
  }
  return std::move(phases[0]);
}

std::int64_t ShardedTrainer::bytes() const {
  std::int64_t bytes = 0;
  for (const auto& rank : ranks_) {
    for (const auto& [what, count] : rank.engine->bytes()) bytes += count;
  }
  return bytes;
}

}  // namespace troupe::bench
