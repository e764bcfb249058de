#pragma once

#include <memory>
#include <vector>

#include "base/random.h"
#include "tests/device/ptx/warp.h"

namespace troupe::device::ptx {

/// A block of threads on its way through a kernel: its warps, shared memory and barriers. One block after another may
/// use it.
class Block {
 public:
  Block(LaunchState& launch, std::uint32_t num_warps);

  void start(std::uint32_t number);
  /// Runs one warp for a while; false when the block has ended.
  bool step();

 private:
  /// A barrier that warps wait at. Source: PTX ISA 9.0, "bar, barrier".
  struct Barrier {
    /// Warps that have arrived, those of them that wait, and how many threads must arrive; 0 for all.
    std::uint32_t arrived = 0, waiting = 0, threads = 0;
    std::uint32_t first_op = kNone;
    std::uint32_t count = 0, total = 0;
  };
  void arrive(std::uint32_t warp);
  void complete_barriers();
  void complete(Barrier& barrier);
  void report_hang();

  LaunchState& launch_;
  BlockState state_;
  std::vector<std::unique_ptr<Warp>> warps_;
  std::vector<std::uint32_t> ready_;
  Barrier barriers_[16];
  CounterRng random_{0, 0, 0};
  std::uint32_t slice_ = 1;
};

}  // namespace troupe::device::ptx
