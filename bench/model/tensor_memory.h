#pragma once

#include <cstdint>
#include <functional>

namespace troupe::bench {

/// The most bytes of tensors on the CPU that `program` has allocated at once, over what was there before; counted at
/// the allocator, in this thread and in those that ATen starts for it. Scratch memory of the math libraries is not
/// in it.
std::int64_t peak_tensor_bytes(const std::function<void()>& program);

}  // namespace troupe::bench
