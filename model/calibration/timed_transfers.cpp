#include "model/calibration/timed_transfers.h"

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/temporary_folder.h"
#include "comm/collective/collective.h"

namespace troupe::model {
namespace {

constexpr int kRanks = 2, kTries = 5;
constexpr std::chrono::milliseconds kPatience{10'000};
/// Bytes of a shard.
constexpr std::array<std::size_t, 3> kShards = {std::size_t{16} << 10, std::size_t{1} << 20, std::size_t{12} << 20};

using Join = std::function<std::unique_ptr<Collective>(int rank)>;

/// Seconds of an all-gather of each size, of rank 0; empty where the group failed.
std::vector<double> time_ranks(const Join& join) {
  std::array<std::vector<double>, kRanks> seconds;
  const auto body = [&](int rank) {
    const auto group = join(rank);
    if (!group) return;
    for (const std::size_t shard : kShards) {
      std::vector<std::byte> own(shard), whole(shard * kRanks);
      bool failed = false;
      const double median = median_seconds(kTries, [&] { failed = !group->all_gather(whole, own) || failed; });
      if (failed) return;
      seconds[static_cast<std::size_t>(rank)].push_back(median);
    }
  };
  std::thread other(body, 1);
  body(0);
  other.join();
  return seconds[0];
}

void add(KernelTimes& times, KernelFamily family, const std::vector<double>& seconds) {
  if (seconds.size() != kShards.size()) return;
  for (std::size_t i = 0; i < kShards.size(); ++i)
    times.add({.family = family, .bytes = static_cast<double>(kShards[i])}, seconds[i]);
}

}  // namespace

void time_transfers(KernelTimes& times) {
  const auto group = make_thread_group(kRanks, kPatience);
  add(times, KernelFamily::thread_transfer, time_ranks([&](int rank) { return join_thread_group(group, rank); }));
  const auto folder = TemporaryFolder::make("troupe-rates");
  if (!folder) return;
  add(times, KernelFamily::gloo_transfer, time_ranks([&](int rank) -> std::unique_ptr<Collective> {
        auto joined = join_gloo_group(
            {.store_path = folder->path() + "/store", .rank = rank, .world = kRanks, .timeout = kPatience});
        return joined ? std::move(*joined) : nullptr;
      }));
}

}  // namespace troupe::model
