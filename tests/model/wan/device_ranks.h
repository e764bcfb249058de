#pragma once

#include <gmock/gmock.h>

#include <memory>
#include <vector>

#include "comm/collective/nccl_collective.h"
#include "device/cuda/cuda_device.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/product.h"
#include "model/wan/dit.h"
#include "tests/device/standin/standin.h"
#include "tests/model/shard/training_harness.h"
#include "tests/model/wan/tiny_model.h"

/// Ranks that train DreamZero's transformer on devices: those of the stand-ins, or of hardware.
namespace troupe::model {

inline const testing::TinyShape kShape{.name = "tiny"};

/// Two heads of 16 channels.
inline std::shared_ptr<const DitNetwork> make_network(bool lora) {
  auto config = testing::tiny_config(kShape);
  config.dit.dim = 32;
  if (lora) config.train_architecture = "lora";
  return std::make_shared<DitNetwork>(config, kShape.max_blocks);
}

inline RankDevice cuda_device(int rank) {
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
    device::standin::reset({.seed = 7, .devices = devices_});
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

  int devices_ = 1;

 private:
  kernels::ProductForm form_{};
};

class TwoDevicesEngineTest : public DeviceEngineTest {
 protected:
  TwoDevicesEngineTest() { devices_ = 2; }
};

}  // namespace troupe::model
