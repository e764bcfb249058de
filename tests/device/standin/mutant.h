#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::device::standin {

/// One fault that is planted in a kernel.
struct MutantChoice {
  /// Part of the kernel's mangled name.
  std::string kernel;
  /// Which of the kernel's places, in the order of its PTX.
  std::size_t place = 0;
};

/// Plants a fault in every kernel of that name of the module's text: a barrier of a block or a warp, or a wait for
/// asynchronous copies, is taken away; or a comparison of integers is off by one (lt and le, gt and ge are exchanged).
/// Lines keep their numbers. Returns what was changed, or nothing where there is no such place.
std::optional<std::string> plant(std::string& ptx, const MutantChoice& choice);

}  // namespace troupe::device::standin
