// DreamZero's transformer in the engine on devices, on the stand-ins of the CUDA runtime, cuBLASLt and NCCL: whole
// training steps against the same steps on cores, and no finding of what the stand-ins check.
#include <gmock/gmock.h>

#include "comm/collective/nccl_collective.h"
#include "device/cuda/cuda_device.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/product.h"
#include "model/wan/dit.h"
#include "tests/device/standin/standin.h"
#include "tests/model/shard/training_harness.h"
#include "tests/model/wan/tiny_model.h"

namespace troupe::model {
namespace {

using ::testing::IsEmpty;

const testing::TinyShape kShape{.name = "tiny"};

/// Two heads of 16 channels.
std::shared_ptr<const DitNetwork> make_network(bool lora) {
  auto config = testing::tiny_config(kShape);
  config.dit.dim = 32;
  if (lora) config.train_architecture = "lora";
  return std::make_shared<DitNetwork>(config, kShape.max_blocks);
}

RankDevice standin_device(int rank) {
  auto device = device::make_cuda_device(rank).value();
  auto kernels = kernels::cuda::make_cuda_kernels(*device);
  return {std::move(device), std::move(kernels)};
}

/// A group of ranks, a thread each, that exchange over NCCL.
class NcclRanks {
 public:
  explicit NcclRanks(int world) : group_(make_thread_group(world, kTimeout)) {
    for (int r = 0; r < world; ++r) devices_.push_back(device::make_cuda_device(r).value());
  }
  JoinRank join() {
    return [this](int rank) {
      return make_nccl_collective(join_thread_group(group_, rank), *devices_[static_cast<std::size_t>(rank)], kTimeout)
          .value();
    };
  }

 private:
  static constexpr std::chrono::seconds kTimeout{60};
  std::shared_ptr<ThreadGroup> group_;
  /// beside the engines' own, of the same GPUs
  std::vector<std::unique_ptr<device::Device>> devices_;
};

class DeviceEngineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    device::standin::reset({.seed = 7});
    form_ = kernels::product_form();
    kernels::set_product_form(kernels::ProductForm::native);
  }
  void TearDown() override { kernels::set_product_form(form_); }

  /// Two steps of two micro-batches of two samples.
  static TrainingRun make_run(at::ScalarType dtype, bool lora = false) {
    TrainingRun run{.micro_batches = 2, .steps = 2, .lr = 1e-3, .network = make_network(lora)};
    run.options.param_dtype = dtype;
    run.options.recompute = {RecomputeLevel::none, RecomputeLevel::attention, RecomputeLevel::full};
    run.batch = [dtype](std::int64_t number) {
      return testing::tiny_batch(kShape, 2, dtype, static_cast<std::uint64_t>(2 * number));
    };
    return run;
  }

 private:
  kernels::ProductForm form_{};
};

/// The largest difference between two states, as a share of what the values moved or are.
double distance(const FullState& a, const FullState& b) {
  double largest = 0;
  for (std::size_t u = 0; u < a.values.size(); ++u) {
    for (std::size_t kind = 0; kind < a.values[u].size(); ++kind) {
      double most = 0, size = 1e-12;
      for (std::size_t i = 0; i < a.values[u][kind].size(); ++i) {
        const double x = a.values[u][kind][i], y = b.values[u][kind][i];
        most = std::max(most, std::abs(x - y)), size = std::max(size, std::abs(x));
      }
      largest = std::max(largest, most / size);
    }
  }
  return largest;
}

TEST_F(DeviceEngineTest, StepsInF32AreThoseOfTheCores) {
  for (const bool lora : {false, true}) {
    TrainingRun run = make_run(at::kFloat, lora);
    const auto want = train(run);
    run.device = standin_device;
    const auto got = train(run);
    for (std::size_t i = 0; i < want.losses.size(); ++i) {
      EXPECT_NEAR(got.losses[i], want.losses[i], 1e-5 * want.losses[i]) << "step " << i;
      EXPECT_NEAR(got.norms[i], want.norms[i], 1e-4 * want.norms[i]) << "step " << i;
    }
    EXPECT_LT(distance(want.state, got.state), 2e-2) << (lora ? "lora" : "all weights");
    EXPECT_THAT(device::standin::report().findings, IsEmpty());
  }
}

TEST_F(DeviceEngineTest, StepsInBf16FollowTheCores) {
  TrainingRun run = make_run(at::kBFloat16);
  const auto want = train(run);
  run.device = standin_device;
  for (const auto moments : {at::kFloat, at::kBFloat16}) {
    run.options.moment_dtype = moments;
    const auto got = train(run);
    for (std::size_t i = 0; i < want.losses.size(); ++i)
      EXPECT_NEAR(got.losses[i], want.losses[i], 2e-2 * want.losses[i]) << "step " << i;
    EXPECT_THAT(device::standin::report().findings, IsEmpty());
  }
}

TEST_F(DeviceEngineTest, AnotherOrderOfTheDevicesWorkChangesNoBit) {
  TrainingRun run = make_run(at::kBFloat16);
  run.device = standin_device;
  const auto want = train(run);
  for (const std::uint64_t seed : {1, 2}) {
    device::standin::reset({.seed = seed});
    const auto got = train(run);
    EXPECT_EQ(got.losses, want.losses);
    EXPECT_TRUE(got.state == want.state);
    EXPECT_THAT(device::standin::report().findings, IsEmpty());
  }
}

TEST_F(DeviceEngineTest, GraphsChangeNoBit) {
  TrainingRun run = make_run(at::kBFloat16);
  run.steps = 4;
  run.device = standin_device;
  run.options.graphs = false;
  const auto want = train(run);
  EXPECT_EQ(device::standin::report().graph_launches, 0U);
  for (const std::uint64_t seed : {1, 2}) {
    device::standin::reset({.seed = seed});
    run.options.graphs = true;
    const auto got = train(run);
    EXPECT_EQ(got.losses, want.losses);
    EXPECT_TRUE(got.state == want.state);
    const auto found = device::standin::report();
    EXPECT_GT(found.graph_launches, 0U);
    EXPECT_THAT(found.findings, IsEmpty());
  }
}

TEST_F(DeviceEngineTest, OffloadedStatesAndRecomputeChangeNoBit) {
  TrainingRun run = make_run(at::kFloat);
  run.device = standin_device;
  const auto want = train(run);
  run.options.offload.states = true;
  run.options.recompute = {RecomputeLevel::cheap};
  const auto got = train(run);
  EXPECT_EQ(got.losses, want.losses);
  EXPECT_TRUE(got.state == want.state);
  EXPECT_THAT(device::standin::report().findings, IsEmpty());
}

TEST_F(DeviceEngineTest, RanksThatExchangeOverNcclGiveTheBitsOfOneThatAccumulates) {
  TrainingRun run = make_run(at::kFloat);
  run.device = standin_device;
  const auto want = train(run);
  run.world = 2;
  run.micro_batches = 1;
  // one copy of the parameters in shards, and two replicas
  for (const int sharing_ranks : {0, 1}) {
    device::standin::reset({.seed = 5, .devices = 2});
    NcclRanks ranks(2);
    run.join = ranks.join();
    run.options.sharing_ranks = sharing_ranks;
    const auto got = train(run);
    EXPECT_EQ(got.losses, want.losses);
    EXPECT_EQ(got.norms, want.norms);
    EXPECT_TRUE(got.state == want.state) << "sharing ranks " << sharing_ranks;
    const auto found = device::standin::report();
    EXPECT_THAT(found.findings, IsEmpty());
    EXPECT_GT(found.collectives, 0U);
  }
}

}  // namespace
}  // namespace troupe::model
