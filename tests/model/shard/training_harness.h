#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/shard/engine.h"
#include "tests/model/shard/chain_network.h"

namespace troupe::model {

/// Places of kinds of state in FullState::values.
inline constexpr auto kMaster = static_cast<std::size_t>(StateKind::master),
                      kM = static_cast<std::size_t>(StateKind::m), kV = static_cast<std::size_t>(StateKind::v),
                      kEma = static_cast<std::size_t>(StateKind::ema);

/// The whole state of a run, independent of the world size: [unit][kind][element of the unpadded flat buffer].
struct FullState final : StateSource {
  std::vector<std::vector<std::vector<float>>> values;
  std::int64_t num_updates = 0;
  std::map<std::string, std::int64_t> by_group = {};
  std::int64_t updates() const override { return num_updates; }
  std::map<std::string, std::int64_t> group_updates() const override { return by_group; }
  /// An average that a state lacks is its master.
  Result<void> read(std::size_t unit, StateKind kind, std::int64_t begin, std::int64_t count,
                    float* out) const override;
  bool operator==(const FullState& other) const {
    return values == other.values && num_updates == other.num_updates && by_group == other.by_group;
  }
};

/// Makes rank r's collective, on its thread; null: a fresh group of the thread backend.
using JoinRank = std::function<std::unique_ptr<Collective>(int rank)>;

/// A rank's device, and the kernels of one that is not the host.
struct RankDevice {
  RankDevice() = default;
  template <class D>
  RankDevice(std::unique_ptr<D> own, std::shared_ptr<kernels::DeviceKernels> with_kernels = nullptr)
      : device(std::move(own)), device_kernels(std::move(with_kernels)) {}

  std::unique_ptr<device::Device> device;
  std::shared_ptr<kernels::DeviceKernels> device_kernels;
};
/// Makes rank r's, on its thread; null: the host's.
using MakeDevice = std::function<RankDevice(int rank)>;

/// What one run of the harness does.
struct TrainingRun {
  int world = 1;
  int micro_batches = 1;  ///< per rank and step
  std::int64_t first_step = 0, steps = 5;
  double lr = 1e-2;
  EngineOptions options{.clip_grad_norm = 0.5,
                        .adamw = {.beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .weight_decay = 0.01}};
  std::shared_ptr<const Network> network = nullptr;  ///< null: ChainNetwork()
  /// Global micro-batch, by number.
  std::function<Batch(std::int64_t)> batch = [](std::int64_t number) { return chain_batch(number); };
  const StateSource* resume = nullptr;  ///< null: initialise with seed 11
  JoinRank join = nullptr;
  MakeDevice device = nullptr;
};

struct TrainingResult {
  std::vector<double> losses, norms;  ///< of each step, over all ranks
  FullState state;
};

/// A rank's engine that is attached and starts from a seed.
struct StartedEngine : Engine {
  explicit StartedEngine(Collective& group, std::shared_ptr<const Network> network = std::make_shared<ChainNetwork>(),
                         EngineOptions options = {}, std::uint64_t seed = 1,
                         device::Device& device = device::host_device(),
                         kernels::DeviceKernels* device_kernels = nullptr)
      : Engine(std::move(network), std::move(options), device, device_kernels) {
    attach(group).value();
    initialise(seed);
  }
};

/// The loop of one rank: global micro-batch j * world + rank is this rank's j-th. Appends to losses and norms.
Result<void> train_rank(Engine& engine, const TrainingRun& run, std::vector<double>& losses,
                        std::vector<double>& norms);

/// Puts the ranks' snapshots together. `units` and `layouts` are an engine's; `has_average`: so does it.
FullState full_state(const std::vector<UnitSpec>& units, const std::vector<FlatLayout>& layouts, int world,
                     const std::vector<std::vector<std::byte>>& snapshots, std::int64_t updates,
                     bool has_average = false);
/// A rank's snapshot with its frozen units in their places, as f32. `options` are the engine's.
std::vector<std::byte> snapshot_of(Engine& engine, const EngineOptions& options = {});

/// Runs every rank on a thread of its own, one intra-op thread each, and fails the test if a rank fails.
TrainingResult train(const TrainingRun& run);

/// Expects the state to load on 1, 2, 3, 4 and 8 ranks, to the bit. `run` says the engine's options.
void expect_every_world_loads(TrainingRun run, const FullState& saved);

/// Runs `body` for each rank on its own thread, with one intra-op thread each.
void run_thread_ranks(int world, const std::function<void(Collective&)>& body, JoinRank join = nullptr);

/// The state after `work` on every rank's engine, which starts from a seed.
FullState state_after(int world, const std::shared_ptr<const Network>& network, const EngineOptions& options,
                      std::uint64_t seed, const std::function<void(Engine&)>& work, const JoinRank& join = nullptr,
                      const MakeDevice& device = nullptr);

}  // namespace troupe::model
