// NCCL on the stand-in: ranks are threads, each with a device and a stream of its own.
#include "comm/collective/nccl_collective.h"

#include <gmock/gmock.h>

#include <cmath>

#include "device/cuda/cuda_device.h"
#include "tests/comm/collective/collective_conformance.h"
#include "tests/comm/collective/wrapped_collective.h"
#include "tests/device/standin/standin.h"

namespace troupe::comm {
namespace {

using namespace std::chrono_literals;

/// A rank's device, and memory of it.
class Rank {
 public:
  explicit Rank(int ordinal)
      : device_(device::make_cuda_device(ordinal).value()),
        stream_(device_->make_stream(device::StreamUse::transfer)) {}

  device::Device& device() { return *device_; }
  device::Stream& stream() { return *stream_; }
  /// On the device; copied there in the stream's order.
  std::span<std::byte> put(std::span<const std::byte> bytes) {
    const auto size = static_cast<std::int64_t>(bytes.size());
    memory_.push_back(device_->allocate(size));
    stream_->copy(memory_.back()->address(), bytes.data(), size);
    return {memory_.back()->address(), bytes.size()};
  }

 private:
  std::unique_ptr<device::Device> device_;
  std::vector<std::shared_ptr<device::Memory>> memory_;
  std::unique_ptr<device::Stream> stream_;
};

/// Takes the host's memory to the device and back for each operation, so that the tests of all backends run on it.
class StagedCollective final : public WrappedCollective {
 public:
  StagedCollective(std::unique_ptr<Rank> rank, std::unique_ptr<Collective> inner)
      : WrappedCollective(std::move(inner)), rank_(std::move(rank)) {}
  ~StagedCollective() override { inner_.reset(); }  // before the rank's device
  Result<void> all_gather(std::span<std::byte> full, std::span<const std::byte> shard) override {
    const auto there = rank_->put(full);
    // a shard within its place stays within it
    const bool is_inside = shard.data() >= full.data() && shard.data() < full.data() + full.size();
    const auto from = is_inside ? there.subspan(static_cast<std::size_t>(shard.data() - full.data()), shard.size())
                                : rank_->put(shard);
    return staged(full, there, [&] { return inner_->enqueue_all_gather(there, from, rank_->stream()); });
  }
  Result<void> all_to_all(std::span<std::byte> received, std::span<const std::byte> sent) override {
    const auto there = rank_->put(received), from = rank_->put(sent);
    return staged(received, there, [&] { return inner_->enqueue_all_to_all(there, from, rank_->stream()); });
  }

 private:
  template <class Enqueue>
  Result<void> staged(std::span<std::byte> to, std::span<const std::byte> there, const Enqueue& enqueue) {
    auto& stream = rank_->stream();
    stream.enqueue(enqueue);
    stream.copy(to.data(), there.data(), static_cast<std::int64_t>(there.size()));
    TROUPE_TRY(stream.synchronize());
    return inner_->status();
  }
  std::unique_ptr<Rank> rank_;
};

const CollectiveBackend kNcclBackend{
    "nccl", [](int world, std::chrono::milliseconds timeout) {
      device::standin::reset({.seed = 3, .devices = world});
      return [group = make_thread_group(world, timeout), timeout](int rank) -> std::unique_ptr<Collective> {
        auto own = std::make_unique<Rank>(rank);
        auto joined = make_nccl_collective(join_thread_group(group, rank), own->device(), timeout).value();
        return std::make_unique<StagedCollective>(std::move(own), std::move(joined));
      };
    }};

INSTANTIATE_TEST_SUITE_P(Nccl, CollectiveConformanceTest, ::testing::Values(kNcclBackend),
                         [](const auto& param) { return param.param.name; });

class NcclCollectiveTest : public ::testing::Test {
 protected:
  /// Runs `body` as every rank of a group on devices, each on its own thread.
  static void run_ranks(int world, const device::standin::Options& options,
                        const std::function<void(Rank&, Collective&)>& body, std::chrono::milliseconds timeout = 20s) {
    device::standin::reset(options);
    const auto group = make_thread_group(world, timeout);
    std::vector<std::thread> threads;
    for (int r = 0; r < world; ++r) {
      threads.emplace_back([&, r] {
        Rank rank(r);
        const auto collective = make_nccl_collective(join_thread_group(group, r), rank.device(), timeout).value();
        body(rank, *collective);
        (void)rank.stream().synchronize();
      });
    }
    for (auto& thread : threads) thread.join();
  }
};

TEST_F(NcclCollectiveTest, OperationsAreEnqueuedWithoutWaiting) {
  for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
    run_ranks(2, {.seed = seed, .devices = 2}, [&](Rank& rank, Collective& c) {
      const auto own = static_cast<std::size_t>(c.rank());
      std::vector<float> full(2 * 100), received(2 * 100);
      for (std::size_t i = 0; i < 100; ++i) full[own * 100 + i] = noisy(c.rank(), 0, i);
      const auto there = rank.put(bytes(full)), parts = rank.put(bytes(received));
      auto& stream = rank.stream();
      // what was gathered is exchanged: each gets its own part of both
      stream.enqueue([&] { return c.enqueue_all_gather(there, there.subspan(own * 400, 400), stream); });
      stream.enqueue([&] { return c.enqueue_all_to_all(parts, there, stream); });
      stream.copy(bytes(received).data(), parts.data(), 800);
      ASSERT_TRUE(stream.synchronize());
      ASSERT_TRUE(c.status());
      for (std::size_t i = 0; i < 200; ++i) ASSERT_EQ(received[i], noisy(c.rank(), 0, i % 100));
    });
    const auto found = device::standin::report();
    EXPECT_THAT(found.findings, ::testing::IsEmpty());
    EXPECT_EQ(found.collectives, 4);
  }
}

TEST_F(NcclCollectiveTest, ASumOverRanksLandsInParts) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    run_ranks(3, {.seed = seed, .devices = 3}, [&](Rank& rank, Collective& c) {
      std::vector<float> whole(3 * 100), part(100);
      for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = noisy(c.rank(), 0, i);
      const auto there = rank.put(bytes(whole)), sum = rank.put(bytes(part));
      const auto floats = [](std::span<std::byte> memory) {
        return std::span(reinterpret_cast<float*>(memory.data()), memory.size() / sizeof(float));
      };
      auto& stream = rank.stream();
      stream.enqueue([&] { return c.enqueue_reduce_scatter(floats(sum), floats(there), stream); });
      stream.copy(bytes(part).data(), sum.data(), 400);
      ASSERT_TRUE(stream.synchronize());
      for (std::size_t i = 0; i < 100; ++i) {
        const std::size_t at = static_cast<std::size_t>(c.rank()) * 100 + i;
        const double first = noisy(0, 0, at), second = noisy(1, 0, at), third = noisy(2, 0, at);
        ASSERT_NEAR(part[i], first + second + third, 1e-6 * (std::abs(first) + std::abs(second) + std::abs(third)));
      }
      const auto refused = c.enqueue_reduce_scatter(floats(sum), floats(there).first(299), stream);
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().code(), Errc::invalid_argument);
    });
    EXPECT_THAT(device::standin::report().findings, ::testing::IsEmpty());
  }
}

TEST_F(NcclCollectiveTest, AMissingWaitIsFound) {
  bool is_found = false;
  for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
    run_ranks(2, {.seed = seed, .devices = 2}, [&](Rank& rank, Collective& c) {
      std::vector<float> full(2 * 100), shard(100);
      const auto there = rank.put(bytes(full)), from = rank.put(bytes(shard));
      ASSERT_TRUE(rank.stream().synchronize());
      const auto other = rank.device().make_stream(device::StreamUse::compute);
      rank.stream().enqueue([&] { return c.enqueue_all_gather(there, from, rank.stream()); });
      other->clear(there.data(), 800);
      ASSERT_TRUE(rank.stream().synchronize());
      ASSERT_TRUE(other->synchronize());
    });
    for (const auto& finding : device::standin::report().findings) {
      EXPECT_THAT(finding, ::testing::AllOf(::testing::HasSubstr("hazard: "), ::testing::HasSubstr("ncclAllGather"),
                                            ::testing::HasSubstr("cudaMemsetAsync")));
      is_found = true;
    }
  }
  EXPECT_TRUE(is_found);
}

TEST_F(NcclCollectiveTest, ALostPeerEndsWhatWaitsForItWhetherNcclSaysSoOrNot) {
  for (const bool is_told : {true, false}) {
    run_ranks(
        2, {.devices = 2, .reports_lost_peers = is_told},
        [&](Rank& rank, Collective& c) {
          if (c.rank() == 1) return;  // its collective is destroyed
          std::vector<float> full(20), shard(10);
          const auto there = rank.put(bytes(full)), from = rank.put(bytes(shard));
          rank.stream().enqueue([&] { return c.enqueue_all_gather(there, from, rank.stream()); });
          // NCCL may have said it when the operation was issued
          auto ended = rank.stream().synchronize();
          if (ended) ended = c.status();
          ASSERT_FALSE(ended);
          EXPECT_EQ(ended.error().code(), is_told ? Errc::aborted : Errc::deadline_exceeded);
          EXPECT_THAT(ended.error().message(), ::testing::HasSubstr("all_gather #0 on rank 0 of 2"));
        },
        is_told ? 20'000ms : 500ms);
  }
}

TEST_F(NcclCollectiveTest, RanksThatDisagreeAreAnError) {
  run_ranks(2, {.devices = 2}, [&](Rank& rank, Collective& c) {
    std::vector<float> full(20), shard(10);
    const auto there = rank.put(bytes(full)), from = rank.put(bytes(shard)), other = rank.put(bytes(full));
    rank.stream().enqueue([&] {
      return c.rank() == 0 ? c.enqueue_all_gather(there, from, rank.stream())
                           : c.enqueue_all_to_all(there, other, rank.stream());
    });
    (void)rank.stream().synchronize();
    EXPECT_FALSE(c.status());
  });
  EXPECT_THAT(device::standin::report().findings, ::testing::Contains(::testing::HasSubstr("expects")));
}

}  // namespace
}  // namespace troupe::comm
