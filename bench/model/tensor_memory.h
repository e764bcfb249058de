#pragma once

#include <cstdint>
#include <functional>

namespace troupe::bench {

/// Memory of tensors on the CPU, counted at the allocator.
struct TensorUse {
  std::int64_t peak_bytes = 0;             ///< the most at once, over what was there before
  std::int64_t allocations = 0;            ///< how often memory was asked for, but inside LibTorch's attention
  std::int64_t attention_allocations = 0;  ///< and in there: its results and scratch memory
};

/// What `program` uses, in this thread and in those that ATen starts for it. Scratch memory of the math libraries is
/// not in it.
TensorUse tensor_use(const std::function<void()>& program);

}  // namespace troupe::bench
