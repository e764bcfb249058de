#include "bench/model/sharded_trainer.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <exception>
#include <thread>

#include "base/stopwatch.h"
#include "bench/support/failures.h"

namespace troupe::bench {
namespace {

constexpr std::chrono::seconds kPatience{60};

Batch part_of(const Batch& batch, int rank, int world) {
  Batch part;
  for (const auto& [name, tensor] : batch) {
    const std::int64_t samples = tensor.size(0) / world;
    part[name] = tensor.narrow(0, rank * samples, samples).contiguous();
  }
  return part;
}

}  // namespace

ShardedTrainer::ShardedTrainer(std::shared_ptr<const Network> network, int world, const EngineOptions& options,
                               std::uint64_t seed) {
  const auto group = make_thread_group(world, kPatience);
  for (int r = 0; r < world; ++r) {
    auto& rank = ranks_.emplace_back();
    rank.group = join_thread_group(group, r);
    rank.engine = std::make_unique<Engine>(network, options);
    rank.engine->attach(*rank.group);
    rank.engine->initialise(seed);
  }
}

double ShardedTrainer::step(Rank& rank, const Batch& part, double lr) const {
  const double weight = 1.0 / static_cast<double>(ranks_.size());
  const auto micro = must(rank.engine->accumulate(part, weight, /*first=*/true));
  const auto vote = must(rank.engine->vote({weight * micro.loss}, {}));
  rank.engine->commit(lr, vote);
  return vote.sums.at(0);
}

Phase ShardedTrainer::run(const std::vector<Batch>& batches, int warm_up, int steps, double lr) {
  using Clock = std::chrono::steady_clock;
  const int world = static_cast<int>(ranks_.size());
  Phase phase;
  std::vector<std::exception_ptr> failures(ranks_.size());
  const auto body = [&](int r) {
    at::set_num_threads(1);
    Rank& rank = ranks_[static_cast<std::size_t>(r)];
    std::vector<Batch> parts;
    for (const auto& batch : batches) parts.push_back(part_of(batch, r, world));
    for (int i = 0; i < warm_up; ++i) step(rank, parts[static_cast<std::size_t>(i) % parts.size()], lr);
    must(rank.group->barrier());
    const auto begin = Clock::now();
    std::vector<double> losses;
    for (int i = 0; i < steps; ++i) losses.push_back(step(rank, parts[static_cast<std::size_t>(i) % parts.size()], lr));
    must(rank.group->barrier());
    if (r == 0) phase = {seconds_since(begin), std::move(losses)};
  };
  std::vector<std::thread> threads;
  for (int r = 0; r < world; ++r) {
    threads.emplace_back([&, r] {
      try {
        body(r);
      } catch (...) {
        failures[static_cast<std::size_t>(r)] = std::current_exception();
        ranks_[static_cast<std::size_t>(r)].group->abort("a rank of the benchmark failed");
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return phase;
}

}  // namespace troupe::bench
