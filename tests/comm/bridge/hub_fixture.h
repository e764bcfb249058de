#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <condition_variable>
#include <fstream>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/file_descriptor.h"
#include "comm/bridge/bridge_hub.h"
#include "tests/comm/bridge/scripted_worker.h"
#include "tests/support/visible.h"

namespace troupe::comm {

inline constexpr auto kPatience = std::chrono::milliseconds(20'000);

/// Of this machine and its process ids, as a worker says it.
inline std::string host_id() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  char space[64] = {};
  EXPECT_GT(::readlink("/proc/self/ns/pid", space, sizeof space - 1), 0);
  const std::string inode = std::string(space).substr(5);  // "pid:[4026531836]"
  return boot + "/" + inode.substr(0, inode.size() - 1);
}

class BridgeHubTest : public ::testing::Test {
 protected:
  void start(BridgeHubOptions options = {}) {
    options.on_gone = [this](const std::string& name, const Error& why) {
      const std::lock_guard lock(mutex_);
      gone_.push_back(name + ": " + why.message());
      changed_.notify_all();
    };
    auto hub = BridgeHub::start(std::move(options));
    ASSERT_TRUE(hub) << hub.error().message();
    hub_ = std::move(*hub);
  }
  /// A lease of `rows` from this worker, which answers it.
  std::unique_ptr<BridgeLease> lease(ScriptedWorker& worker, std::int64_t rows = 2) {
    auto asked = std::async(std::launch::async, [&] { return hub_->lease(rows, kPatience); });
    const BridgeMessage question = worker.hear("LEASE");
    EXPECT_EQ(*find(question.body, "rows"), WireValue(rows));
    worker.answer(question, "LEASED");
    auto lease = asked.get();
    EXPECT_TRUE(lease) << lease.error().message();
    return lease ? std::move(*lease) : nullptr;
  }
  std::string next_gone() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, kPatience, [this] { return !gone_.empty(); })) return "no worker was reported gone";
    std::string first = gone_.front();
    gone_.erase(gone_.begin());
    return first;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> gone_;
  std::unique_ptr<BridgeHub> hub_;
};

/// What a worker that shares memory makes; `seals` keep others from being killed by a shorter file.
inline base::FileDescriptor memory_of(std::size_t bytes, const BridgeMessage& question,
                                      int seals = F_SEAL_SHRINK | F_SEAL_GROW) {
  base::FileDescriptor file(::memfd_create("worker", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
  const std::int64_t nonce = *find(question.body, "nonce")->as<std::int64_t>();
  EXPECT_EQ(::pwrite(file.get(), &nonce, sizeof nonce, 0), static_cast<ssize_t>(sizeof nonce));
  EXPECT_EQ(::fcntl(file.get(), F_ADD_SEALS, seals), 0);
  return file;
}

}  // namespace troupe::comm
