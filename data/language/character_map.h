#pragma once

#include <unicode/brkiter.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// For the sources of this folder only, because of ICU's header.

namespace troupe::data {

/// The map of characters that a SentencePiece model holds (`precompiled_charsmap`; for umT5 a variant of NFKC), applied
/// as Hugging Face's `Precompiled` normaliser applies it. A cluster is an extended grapheme cluster (Unicode UAX #29):
/// - a cluster of at most 5 bytes that begins with an entry of the map is replaced as a whole by the text of the
///   shortest such entry; what else the cluster holds is lost (U+1E9B U+0323 becomes U+1E61 alone);
/// - in any other cluster every character that has an entry is replaced by its text.
/// SentencePiece itself takes the longest entry at every position and loses nothing.
/// Immutable; any thread may call it. A map made without arguments changes nothing.
class CharacterMap {
 public:
  CharacterMap() = default;

  /// The map from its bytes, little-endian: u32 size of the trie in bytes, the trie as u32 units, then the texts, each
  /// ended by a zero byte. The trie is a double array (darts-clone). Bits of a unit: 0-7 label, 8 has a leaf, 9 the
  /// offset counts in 256, 10-30 offset; of a leaf: 0-30 position of its text, 31 set.
  /// Errors: invalid_argument (the sizes contradict each other), internal (ICU has no rules of clusters).
  static Result<CharacterMap> read(std::string_view bytes);

  /// `utf8` with its clusters replaced. Bytes that are not UTF-8 stay as they are. A damaged trie replaces less, and
  /// reads nothing outside.
  std::string apply(std::string_view utf8) const;

 private:
  /// Text of the shortest entry that `text` begins with.
  std::optional<std::string_view> replacement(std::string_view text) const;
  void append_cluster(std::string_view cluster, std::string& out) const;

  std::vector<std::uint32_t> units_;  // empty: no map
  std::string texts_;
  std::unique_ptr<const icu::BreakIterator> clusters_;  // only cloned: an iterator belongs to one thread
};

}  // namespace troupe::data
