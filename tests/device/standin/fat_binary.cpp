#include "tests/device/standin/fat_binary.h"

#include <fmt/core.h>

#include <cstdint>
#include <cstring>

namespace troupe::device::standin {
namespace {

struct Wrapper {
  std::uint32_t magic, version;
  const std::byte* data;
};
struct Header {
  std::uint32_t magic;
  std::uint16_t version, header_bytes;
  std::uint64_t bytes;
};
struct Entry {
  std::uint16_t kind, version;
  std::uint32_t header_bytes;
  std::uint64_t bytes;
};
constexpr std::uint16_t kPtx = 1;

template <class T>
T read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

}  // namespace

Result<std::string> ptx_of(const void* wrapper) {
  const auto outer = read<Wrapper>(static_cast<const std::byte*>(wrapper));
  if (outer.magic != 0x466243b1U) return invalid_argument(fmt::format("no fat binary: magic {:#x}", outer.magic));
  const auto header = read<Header>(outer.data);
  if (header.magic != 0xba55ed50U) return invalid_argument(fmt::format("no fat binary: magic {:#x}", header.magic));
  const std::byte *at = outer.data + header.header_bytes, *end = at + header.bytes;
  while (at + sizeof(Entry) <= end) {
    const auto entry = read<Entry>(at);
    const std::byte* body = at + entry.header_bytes;
    if (entry.kind == kPtx) {
      std::string text(reinterpret_cast<const char*>(body), entry.bytes);
      text.resize(text.find_last_not_of('\0') + 1);
      if (text.find(".version") == std::string::npos)
        return invalid_argument("the PTX of a fat binary is compressed: compile with --no-compress");
      return text;
    }
    at = body + entry.bytes;
  }
  return invalid_argument("a fat binary without PTX: compile with code=compute_90 among the targets");
}

}  // namespace troupe::device::standin
