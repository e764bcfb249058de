#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/namespaces.h"

/// The interpreter of PTX: what nvcc makes of our kernels runs on a core, and every access is checked. README.md here.
namespace troupe::device::ptx {

/// Fundamental types of PTX, and the packed pairs. Source: PTX ISA 9.0, "Fundamental Types", "Packed Data Types".
enum class Type : std::uint8_t {
  b8,
  b16,
  b32,
  b64,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  f16,
  bf16,
  f16x2,
  bf16x2,
  f32,
  f64,
  pred
};

/// Bytes of a value; of a predicate those of one lane's byte in a `.param`.
constexpr std::uint32_t size_of(Type type) {
  constexpr std::uint8_t kSizes[] = {1, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 4, 4, 8, 1};
  return kSizes[static_cast<int>(type)];
}
constexpr bool is_signed(Type type) { return type >= Type::s8 && type <= Type::s64; }
constexpr bool is_float(Type type) { return type >= Type::f16 && type <= Type::f64; }

/// The type of that name without its dot ("u32"), or nothing.
std::optional<Type> type_named(std::string_view name);

/// State spaces that an access or a variable may name; `generic` is an access that names none.
/// Source: PTX ISA 9.0, "State Spaces".
enum class Space : std::uint8_t { generic, global, constant, shared, local, param, reg };

std::string_view name_of(Space space);

/// Lanes of a warp, and the mask of all of them.
inline constexpr int kLanes = 32;
inline constexpr std::uint32_t kAllLanes = 0xFFFFFFFFu;

}  // namespace troupe::device::ptx
