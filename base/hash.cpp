#include "base/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <charconv>

namespace troupe::base {

std::uint64_t xxh3_64(std::span<const std::byte> bytes) noexcept { return XXH3_64bits(bytes.data(), bytes.size()); }
std::uint64_t xxh3_64(std::string_view text) noexcept { return XXH3_64bits(text.data(), text.size()); }
std::uint64_t xxh64(std::span<const std::byte> bytes) noexcept { return XXH64(bytes.data(), bytes.size(), 0); }

namespace {
std::string hex128(XXH128_hash_t h) { return fmt::format("{:016x}{:016x}", h.high64, h.low64); }
}  // namespace

std::string xxh3_128_hex(std::span<const std::byte> bytes) { return hex128(XXH3_128bits(bytes.data(), bytes.size())); }

Xxh3Stream::Xxh3Stream() : state_(XXH3_createState()) { XXH3_128bits_reset(static_cast<XXH3_state_t*>(state_)); }
Xxh3Stream::~Xxh3Stream() { XXH3_freeState(static_cast<XXH3_state_t*>(state_)); }
void Xxh3Stream::update(std::span<const std::byte> bytes) {
  XXH3_128bits_update(static_cast<XXH3_state_t*>(state_), bytes.data(), bytes.size());
}
std::string Xxh3Stream::hex() const { return hex128(XXH3_128bits_digest(static_cast<XXH3_state_t*>(state_))); }

std::string to_hex(std::uint64_t value) { return fmt::format("{:016x}", value); }

std::optional<std::uint64_t> from_hex(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.size() != 16 || error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

}  // namespace troupe::base
