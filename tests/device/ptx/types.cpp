#include "tests/device/ptx/types.h"

#include <array>

namespace troupe::device::ptx {

std::optional<Type> type_named(std::string_view name) {
  constexpr std::array<std::string_view, 19> kNames = {"b8",    "b16",    "b32", "b64", "u8",  "u16", "u32",
                                                       "u64",   "s8",     "s16", "s32", "s64", "f16", "bf16",
                                                       "f16x2", "bf16x2", "f32", "f64", "pred"};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Type>(i);
  }
  return std::nullopt;
}

std::string_view name_of(Space space) {
  constexpr std::array<std::string_view, 7> kNames = {"generic", "global", "const", "shared", "local", "param", "reg"};
  return kNames[static_cast<std::size_t>(space)];
}

}  // namespace troupe::device::ptx
