#include "data/language/character_map.h"

#include <fmt/format.h>
#include <unicode/utext.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <span>

#include "base/byte_stream.h"
#include "base/check.h"

namespace troupe::data {
namespace {

constexpr std::size_t kWholeClusterBytes = 5;  // longer clusters are replaced character by character

// the bits of a unit
std::uint32_t label_of(std::uint32_t unit) { return unit & 0x800000FFU; }  // a leaf has bit 31, so no label equals it
bool has_leaf(std::uint32_t unit) { return (unit >> 8 & 1) != 0; }
std::size_t offset_of(std::uint32_t unit) { return std::size_t{unit >> 10} << ((unit >> 9 & 1) != 0 ? 8 : 0); }
std::size_t position_of(std::uint32_t leaf) { return leaf & 0x7FFFFFFFU; }

/// Whether every byte is a cluster: ASCII, where only CR LF belong together.
bool has_one_byte_clusters(std::string_view utf8) {
  return std::all_of(utf8.begin(), utf8.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80 && c != '\r'; });
}

}  // namespace

Result<CharacterMap> CharacterMap::read(std::string_view bytes) {
  ByteReader in(std::as_bytes(std::span(bytes)));
  const auto trie_bytes = in.number<std::uint32_t>();
  if (!in.ok() || trie_bytes == 0 || trie_bytes % sizeof(std::uint32_t) != 0 || trie_bytes > in.left()) {
    return invalid_argument(
        fmt::format("a character map of {} bytes says that its trie has {}", bytes.size(), trie_bytes));
  }
  CharacterMap map;
  map.units_.resize(trie_bytes / sizeof(std::uint32_t));
  for (std::uint32_t& unit : map.units_) unit = in.number<std::uint32_t>();
  map.texts_ = bytes.substr(bytes.size() - in.left());

  UErrorCode code = U_ZERO_ERROR;
  map.clusters_.reset(icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), code));
  if (U_FAILURE(code)) {
    return Error{Errc::internal, fmt::format("ICU has no rules of clusters: {}", u_errorName(code))};
  }
  return map;
}

std::string CharacterMap::apply(std::string_view utf8) const {
  if (units_.empty()) return std::string(utf8);
  std::string out;
  out.reserve(utf8.size());
  if (has_one_byte_clusters(utf8)) {
    for (std::size_t i = 0; i < utf8.size(); ++i) append_cluster(utf8.substr(i, 1), out);
    return out;
  }

  UErrorCode code = U_ZERO_ERROR;
  const icu::LocalUTextPointer text(
      utext_openUTF8(nullptr, utf8.data(), static_cast<std::int64_t>(utf8.size()), &code));
  const std::unique_ptr<icu::BreakIterator> clusters(clusters_->clone());
  if (clusters != nullptr) clusters->setText(text.getAlias(), code);
  TROUPE_CHECK(clusters != nullptr && U_SUCCESS(code), "a copy of ICU's iterator over a text in memory lacks nothing");
  // positions are those of bytes
  std::int32_t begin = clusters->first();
  for (std::int32_t end = clusters->next(); end != icu::BreakIterator::DONE; end = clusters->next()) {
    append_cluster(utf8.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)), out);
    begin = end;
  }
  return out;
}

std::optional<std::string_view> CharacterMap::replacement(std::string_view text) const {
  std::size_t node = offset_of(units_.front());
  for (const char c : text) {
    const std::uint32_t label = static_cast<unsigned char>(c);
    node ^= label;
    if (label == 0 || node >= units_.size() || label_of(units_[node]) != label) return std::nullopt;
    const bool ends_here = has_leaf(units_[node]);
    node ^= offset_of(units_[node]);
    if (!ends_here) continue;
    if (node >= units_.size() || position_of(units_[node]) >= texts_.size()) return std::nullopt;
    const std::string_view from = std::string_view(texts_).substr(position_of(units_[node]));
    return from.substr(0, from.find('\0'));
  }
  return std::nullopt;
}

void CharacterMap::append_cluster(std::string_view cluster, std::string& out) const {
  if (cluster.size() <= kWholeClusterBytes) {
    if (const auto whole = replacement(cluster)) {
      out += *whole;
      return;
    }
  }
  for (std::size_t begin = 0, end = 0; begin < cluster.size(); begin = end) {
    U8_FWD_1(cluster, end, cluster.size());
    const std::string_view character = cluster.substr(begin, end - begin);
    out += replacement(character).value_or(character);
  }
}

}  // namespace troupe::data
