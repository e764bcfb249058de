#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "tests/device/ptx/block_state.h"
#include "tests/device/ptx/warp_state.h"

namespace troupe::device::ptx {

/// Op::a of barriers.
enum class BarrierKind : std::uint32_t { sync, arrive, popc, all, any };

/// The 32 lanes of a warp. Lanes that are at the same instruction run it together; where a branch parts them they run
/// in a drawn order and meet again at its join. A lane waits where a mask or a barrier names lanes that have not come;
/// if no other lane can go on, those that wait at a join leave it, and then what is missing is a finding.
class Warp {
 public:
  enum class Status : std::uint8_t { ready, at_barrier, done, stopped };

  /// Allocates for that kernel; a warp serves one block after another.
  Warp(const Kernel& kernel, BlockState& block, std::uint32_t index);

  /// Ready at the kernel's entry for the block that `block` now holds.
  void start();

  /// Runs about `steps` instructions of some of its lanes. at_barrier: all live lanes wait at barrier(). stopped: a
  /// trap, or no lane can go on, which is noted as a finding.
  Status run(std::uint32_t steps, CounterRng& random);

  Status status() const { return status_; }
  /// The instruction all lanes wait at. Only at_barrier.
  const Op& barrier() const { return *barrier_; }
  WarpState& state() { return state_; }
  /// The barrier is complete: the lanes go on.
  void pass_barrier();

 private:
  /// Lanes at the same instruction, with the calls they are in.
  struct Fragment {
    std::uint32_t lanes = 0, pc = 0;
    std::int32_t join = -1;
    bool waits = false;
    std::vector<std::uint32_t> returns = {};
  };
  /// Where the lanes of a branch meet.
  struct Join {
    std::uint32_t pc = 0, expected = 0, arrived = 0;
    std::int32_t parent = -1;
    std::vector<std::uint32_t> returns = {};
  };

  void run_fragment(std::size_t at, std::uint32_t steps, CounterRng& random);
  bool step(std::size_t at, CounterRng& random);
  /// Lanes `taken` go on at `target`, the others at `next`; they meet at `join`.
  void part(std::size_t at, std::uint32_t taken, std::uint32_t target, std::uint32_t next, std::uint32_t join,
            CounterRng& random);
  void indexed_branch(std::size_t at, const Op& op, CounterRng& random);
  std::int32_t add_join(const Fragment& fragment, std::uint32_t pc);
  bool move_to(std::size_t at, std::uint32_t pc);
  bool park(std::size_t at);
  void leave(std::uint32_t lanes);
  void complete(std::int32_t join);
  bool rendezvous(std::uint32_t pc, bool force);
  bool all_at_barrier();
  void merge();
  void untangle();
  bool break_join();
  void remove(std::size_t at);

  const Kernel& kernel_;
  WarpState state_;
  Status status_ = Status::done;
  const Op* barrier_ = nullptr;
  std::vector<Fragment> fragments_;
  std::vector<Join> joins_;
  std::uint64_t steps_ = 0;
  std::vector<std::byte> registers_, local_;
  std::vector<std::uint8_t> local_written_;
};

}  // namespace troupe::device::ptx
