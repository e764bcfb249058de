#include "tests/model/shard/training_harness.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

namespace troupe::model {

using namespace std::chrono_literals;

Result<void> FullState::read(std::size_t unit, StateKind kind, std::int64_t begin, std::int64_t count,
                             float* out) const {
  const bool is_master = kind == StateKind::ema && values[unit].size() < 4;
  const auto& source = values[unit][is_master ? 0 : static_cast<std::size_t>(kind)];
  if (begin + count > static_cast<std::int64_t>(source.size()))
    return Error{Errc::internal, "read past the end of a unit"};
  std::memcpy(out, source.data() + begin, static_cast<std::size_t>(count) * sizeof(float));
  return {};
}

Result<void> train_rank(Engine& engine, const TrainingRun& run, std::vector<double>& losses,
                        std::vector<double>& norms) {
  const std::int64_t per_step = std::int64_t{run.world} * run.micro_batches;
  const double weight = 1.0 / static_cast<double>(per_step);
  const int rank = engine.replica() * engine.world() + engine.rank();
  for (std::int64_t step = run.first_step; step < run.first_step + run.steps; ++step) {
    for (int j = 0; j < run.micro_batches; ++j) {
      const auto batch = run.batch(step * per_step + j * run.world + rank);
      TROUPE_TRY(engine.enqueue(batch, weight, j == 0));
    }
    const auto numbers = [weight](const std::vector<MicroResult>& results) {
      double loss = 0;
      for (const auto& micro : results) loss += micro.loss * weight;
      return StepNumbers{.sums = {loss}, .maxima = {}};
    };
    TROUPE_ASSIGN(const auto vote, engine.finish_step(run.lr, numbers));
    losses.push_back(vote.sums[0]);
    norms.push_back(vote.grad_norm);
  }
  return {};
}

namespace {

std::size_t saved_kinds(const UnitSpec& unit, bool has_average) {
  if (!unit.trainable) return 1;
  return has_average ? 4 : 3;
}

/// Elements of a snapshot from `next` on, which moves behind them.
at::Tensor take(const std::byte*& next, std::int64_t elements, at::ScalarType dtype) {
  const at::Tensor values = at::from_blob(const_cast<std::byte*>(next), {elements}, dtype).to(at::kFloat).clone();
  next += elements * static_cast<std::int64_t>(c10::elementSize(dtype));
  return values;
}

}  // namespace

std::vector<std::byte> snapshot_of(Engine& engine, const EngineOptions& options) {
  std::vector<std::byte> snapshot(engine.snapshot_bytes()), state;
  engine.snapshot(snapshot);
  const std::byte* next = snapshot.data();
  const auto append = [&](const at::Tensor& values) {
    const auto* bytes = static_cast<const std::byte*>(values.data_ptr());
    state.insert(state.end(), bytes, bytes + values.nbytes());
  };
  for (std::size_t u = 0; u < engine.units().size(); ++u) {
    const UnitSpec& unit = engine.units()[u];
    if (keep_of(unit) == UnitKeep::frozen) {
      append(engine.frozen_shard(u).to(at::kFloat));
      continue;
    }
    for (std::size_t kind = 0; kind < saved_kinds(unit, options.ema_decay > 0); ++kind) {
      const bool is_moment = kind == 1 || kind == 2;
      append(take(next, engine.layouts()[u].shard(engine.world()), is_moment ? options.moment_dtype : at::kFloat));
    }
  }
  EXPECT_EQ(next, snapshot.data() + snapshot.size());
  return state;
}

FullState full_state(const std::vector<UnitSpec>& units, const std::vector<FlatLayout>& layouts, int world,
                     const std::vector<std::vector<std::byte>>& snapshots, std::int64_t updates, bool has_average) {
  FullState state;
  state.num_updates = updates;
  std::size_t at = 0;
  for (std::size_t u = 0; u < units.size(); ++u) {
    const auto& layout = layouts[u];
    const auto shard_bytes = static_cast<std::size_t>(layout.shard(world)) * sizeof(float);
    auto& unit = state.values.emplace_back();
    for (std::size_t kind = 0; kind < saved_kinds(units[u], has_average); ++kind) {
      auto& values = unit.emplace_back(static_cast<std::size_t>(layout.padded(world)));
      for (std::size_t r = 0; r < snapshots.size(); ++r) {
        std::memcpy(reinterpret_cast<std::byte*>(values.data()) + r * shard_bytes, snapshots[r].data() + at,
                    shard_bytes);
      }
      at += shard_bytes;
      for (std::size_t i = static_cast<std::size_t>(layout.numel); i < values.size(); ++i)
        EXPECT_EQ(values[i], 0.0f) << "padding";
      values.resize(static_cast<std::size_t>(layout.numel));
    }
  }
  return state;
}

TrainingResult train(const TrainingRun& run) {
  const auto network = run.network ? run.network : std::make_shared<ChainNetwork>();
  TrainingResult result;
  const auto work = [&](Engine& engine) {
    if (run.resume) {
      ASSERT_TRUE(engine.load(*run.resume));
    }
    std::vector<double> losses, norms;
    train_rank(engine, run, losses, norms).value();
    if (engine.rank() != 0 || engine.replica() != 0) return;
    result.losses = losses;
    result.norms = norms;
  };
  result.state = state_after(run.world, network, run.options, 11, work, run.join, run.device);
  result.state.by_group.clear();  // one group alone: what num_updates says
  return result;
}

void expect_every_world_loads(TrainingRun run, const FullState& saved) {
  run.steps = 0;
  run.resume = &saved;
  for (const int world : {1, 2, 3, 4, 8}) {
    run.world = world;
    EXPECT_TRUE(train(run).state == saved) << world << " ranks";
  }
}

void run_thread_ranks(int world, const std::function<void(Collective&)>& body, JoinRank join) {
  if (!join) join = [group = make_thread_group(world, 20s)](int rank) { return join_thread_group(group, rank); };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      at::set_num_threads(1);
      const auto collective = join(rank);
      body(*collective);
    });
  }
  for (auto& thread : threads) thread.join();
}

FullState state_after(int world, const std::shared_ptr<const Network>& network, const EngineOptions& options,
                      std::uint64_t seed, const std::function<void(Engine&)>& work, const JoinRank& join,
                      const MakeDevice& device) {
  std::vector<std::vector<std::byte>> snapshots(static_cast<std::size_t>(world));
  std::map<std::string, std::int64_t> groups;
  std::int64_t updates = 0;
  std::vector<UnitSpec> units;
  std::vector<FlatLayout> layouts;
  const auto body = [&](Collective& collective) {
    const auto own = device ? device(collective.rank()) : RankDevice();
    StartedEngine engine(collective, network, options, seed, own.device ? *own.device : device::host_device(),
                         own.device_kernels.get());
    work(engine);
    snapshots[static_cast<std::size_t>(collective.rank())] = snapshot_of(engine, options);
    if (collective.rank() != 0) return;
    groups = engine.group_updates();
    updates = engine.updates();
    units = engine.units();
    layouts = engine.layouts();
  };
  run_thread_ranks(world, body, join);
  const int sharing = options.sharing_ranks == 0 ? world : options.sharing_ranks;
  for (int rank = sharing; rank < world; ++rank) {
    EXPECT_TRUE(snapshots[static_cast<std::size_t>(rank)] == snapshots[static_cast<std::size_t>(rank % sharing)])
        << "replicas differ";
  }
  snapshots.resize(static_cast<std::size_t>(sharing));
  FullState state = full_state(units, layouts, sharing, snapshots, updates, options.ema_decay > 0);
  state.by_group = groups;
  return state;
}

}  // namespace troupe::model
