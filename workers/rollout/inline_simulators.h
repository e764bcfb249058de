#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "env/block_layout.h"
#include "env/env_block.h"
#include "env/executor.h"
#include "workers/rollout/make_block.h"
#include "workers/rollout/simulators.h"

namespace troupe::workers {

/// No simulators: a rollout worker steps its blocks itself (cluster.isolation.env inline), on its own thread and those
/// of an executor. ask() takes a request down, step() carries all of them out and answers; nothing is sent, and one
/// block's step costs no more than its rows. An environment that crashes or hangs takes the rollout worker with it.
class InlineSimulators final : public Simulators {
 public:
  struct Options {
    /// "rollout/0#0", for logs and scripted faults.
    std::string owner;
    MakeBlock make_block;
    /// Of every block.
    BlockLayout layout;
    /// A block may lie in each.
    std::int64_t slots = 0;
    /// That step, the caller's among them; with 1 no other thread is started.
    std::int64_t threads = 1;
  };
  /// The name of the one simulator that there is.
  static constexpr const char* kName = "inline";

  explicit InlineSimulators(Options options);
  ~InlineSimulators() override;

  std::int64_t num_slots() const override { return options_.slots; }
  std::int64_t free_slots() const override { return static_cast<std::int64_t>(free_.size()); }
  Result<std::uint32_t> ask(const std::string& simulator, const Credit& credit, const BlockRequest& request) override;
  std::byte* slot(std::uint32_t index) override;
  void release(std::uint32_t slot) override { free_.push_back(slot); }

  bool has_steps() const override { return !asked_.empty(); }
  /// An answer has the error of what could not be done: a block that was not begun, environments that could not be
  /// made.
  std::span<const Item> step() override;
  EnvBlock::Counters stepped() const override { return stepped_; }

 private:
  struct Request {
    Credit credit;
    BlockRequest request;
  };
  /// Begins what is asked; `done` is called once, by any thread. Otherwise an error.
  Result<void> begin(const Request& asked);

  const Options options_;
  /// Requests of this step() that are begun and not done. Outlives the executor, whose threads count it down.
  std::atomic<std::int64_t> under_way_{0};
  const std::unique_ptr<Executor> executor_;
  /// BlockLayout wants its buffers at such addresses, and sizes of this.
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> memory_;
  std::vector<std::uint32_t> free_;
  struct Held {
    /// "rollout/0#0 block 3"
    std::string name;
    std::unique_ptr<EnvBlock> block;
  };
  std::map<std::int64_t, Held> blocks_;
  std::vector<Request> asked_;
  /// [n K A] of each slot: the actions of its request.
  std::vector<std::vector<float>> actions_;
  std::vector<Item> answers_;
  /// Blocks that this step() steps, with their counters before.
  struct Counted {
    const EnvBlock* block = nullptr;
    EnvBlock::Counters before;
  };
  std::vector<Counted> counted_;
  EnvBlock::Counters stepped_;
};

/// Errors: failed_precondition (an environment whose steps wait for other processes).
Result<void> check_inline(const EnvFactory& factory);

}  // namespace troupe::workers
