#include "workers/encoder/feature_key.h"

#include "base/hash.h"

namespace troupe::workers {

namespace {

std::uint8_t nibble(char digit) { return static_cast<std::uint8_t>(digit <= '9' ? digit - '0' : digit - 'a' + 10); }

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

std::string FeatureKey::hex() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

FeatureKey feature_key(FeatureKind kind, std::string_view model, std::span<const std::byte> content) {
  static constexpr std::byte kEnd[1] = {};
  Xxh3Stream hash;
  hash.update(bytes_of(enum_name(kind)));
  hash.update(kEnd);
  hash.update(bytes_of(model));
  hash.update(kEnd);
  hash.update(content);
  const std::string hex = hash.hex();
  FeatureKey key;
  for (std::size_t i = 0; i < key.bytes.size(); ++i) {
    key.bytes[i] = static_cast<std::uint8_t>(nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]));
  }
  return key;
}

FeatureKey feature_key(FeatureKind kind, std::string_view model, std::string_view content) {
  return feature_key(kind, model, bytes_of(content));
}

}  // namespace troupe::workers
