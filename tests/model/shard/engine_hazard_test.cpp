// Neither the number of slots nor the order in which a device does what it may changes a bit.
#include <gtest/gtest.h>

#include "tests/model/shard/shuffled_device.h"
#include "tests/model/shard/training_harness.h"
#include "tests/support/scratch_folder.h"

namespace troupe::model {
namespace {

TEST(EngineHazardTest, TheNumberOfSlotsDoesNotChangeABit) {
  TrainingRun run{.world = 2, .micro_batches = 2, .steps = 3};
  run.options.param_slots = 6;
  const auto reference = train(run);
  for (const int k : {1, 2, 3, 9}) {
    for (const int g : {1, 2, 3}) {
      run.options.param_slots = k;
      run.options.grad_slots = g;
      const auto result = train(run);
      EXPECT_EQ(result.losses, reference.losses) << "K " << k << ", G " << g;
      EXPECT_TRUE(result.state == reference.state) << "K " << k << ", G " << g;
    }
  }
}

/// Trains on devices that do their work in an order drawn from the seed.
TrainingResult train_shuffled(TrainingRun run, std::uint64_t seed, std::atomic<int>& overtakings) {
  struct Counted final : device::Device {
    Counted(std::uint64_t draw, std::atomic<int>& sum) : inner(draw), total(sum) {}
    ~Counted() override { total += inner.overtakings(); }
    bool is_host() const noexcept override { return inner.is_host(); }
    std::shared_ptr<device::Memory> allocate(std::int64_t bytes) override { return inner.allocate(bytes); }
    Result<std::shared_ptr<device::Memory>> allocate_behind(std::int64_t bytes, const std::string& folder) override {
      return inner.allocate_behind(bytes, folder);
    }
    std::shared_ptr<device::Memory> allocate_pinned(std::int64_t bytes) override {
      return inner.allocate_pinned(bytes);
    }
    Result<std::unique_ptr<device::Pin>> pin(std::span<std::byte> host) override { return inner.pin(host); }
    std::unique_ptr<device::Stream> make_stream(device::StreamUse use) override { return inner.make_stream(use); }
    std::unique_ptr<device::Event> make_event() override { return inner.make_event(); }
    ShuffledDevice inner;
    std::atomic<int>& total;
  };
  run.device = [&, seed](int) { return std::make_unique<Counted>(seed, overtakings); };
  return train(run);
}

TEST(EngineHazardTest, AThousandPartsInRandomLegalOrderChangeNoBit) {
  const ScratchFolder folder("/var/tmp");
  std::atomic<int> overtakings{0};
  int parts = 0;
  for (std::uint64_t seed = 0; parts < 1000; ++seed) {
    TrainingRun run{
        .world = 1 + static_cast<int>(seed % 3), .micro_batches = 1 + static_cast<int>(seed % 2), .steps = 3};
    run.options.param_slots = 1 + static_cast<int>(seed % 4);
    run.options.grad_slots = 1 + static_cast<int>(seed / 4 % 3);
    run.options.recompute = {seed / 12 % 2 == 0 ? RecomputeLevel::full : RecomputeLevel::none};
    run.options.whole_gradients = seed % 5 == 4;
    if (seed / 24 % 2 == 1) run.options.param_dtype = at::kBFloat16;
    run.options.offload = {.states = seed % 7 < 3, .stash_slots = 0, .folder = folder.path()};
    run.options.lazy_optimizer = seed % 2 == 0;
    const auto in_order = train(run);
    const auto shuffled = train_shuffled(run, seed, overtakings);
    ASSERT_EQ(shuffled.losses, in_order.losses) << "seed " << seed;
    ASSERT_TRUE(shuffled.state == in_order.state) << "seed " << seed;
    // of each rank and step: the micro-batches, the vote and the update
    parts += run.world * static_cast<int>(run.steps) * (run.micro_batches + 2);
  }
  EXPECT_GT(overtakings, 1000);
}

}  // namespace
}  // namespace troupe::model
