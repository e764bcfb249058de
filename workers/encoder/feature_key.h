#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_names.h"

namespace troupe::workers {

/// What a frozen network made of a sample. The numbers are those on disk
/// (docs/features.md#bytes-of-the-cache).
enum class FeatureKind : std::uint8_t {
  /// Text encoder: [real tokens, width].
  text = 1,
  /// Image encoder, of the first frame: [1 + patches, width].
  clip = 2,
  /// Codec: [C, F, h, w].
  latents = 3,
  /// Codec: mask and latents of the first frame, [4 + C, F, h, w].
  first_frame = 4,
};

constexpr auto enum_names(FeatureKind) { return std::array{"", "text", "clip", "latents", "first_frame"}; }

/// Identity of a cached tensor: XXH3-128 over what it was made from and by whom. All zero means none.
struct FeatureKey {
  std::array<std::uint8_t, 16> bytes{};

  bool operator==(const FeatureKey&) const = default;
  explicit operator bool() const noexcept { return *this != FeatureKey{}; }
  /// 32 lower-case hex digits.
  std::string hex() const;
};

/// Key of what `model` (an identity of the network, its weights and precision, in words) makes of `content`:
///     XXH3-128(kind name, 0, model, 0, content)
FeatureKey feature_key(FeatureKind kind, std::string_view model, std::span<const std::byte> content);
FeatureKey feature_key(FeatureKind kind, std::string_view model, std::string_view content);

/// A cached tensor: contiguous, row-major, little-endian.
struct FeatureTensor {
  /// As safetensors writes it: F32 or BF16.
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;
};

}  // namespace troupe::workers

/// Keys are hashes already.
template <>
struct std::hash<troupe::workers::FeatureKey> {
  std::size_t operator()(const troupe::workers::FeatureKey& key) const noexcept {
    std::uint64_t low;
    std::memcpy(&low, key.bytes.data(), sizeof low);
    return static_cast<std::size_t>(low);
  }
};
