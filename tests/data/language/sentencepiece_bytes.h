#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_stream.h"

namespace troupe::testing {

/// The bytes of a SentencePiece map of characters with these entries: the size of the trie, the trie (a double array),
/// the texts.
inline std::string character_map_bytes(const std::map<std::string, std::string>& entries) {
  // what may follow a prefix has 256 units of its own; the first 256 hold the root alone
  std::map<std::string, std::uint32_t> first_unit{{"", 256}};
  for (const auto& [from, to] : entries) {
    for (std::size_t bytes = 1; bytes <= from.size(); ++bytes) {
      const auto next = static_cast<std::uint32_t>(256 * (first_unit.size() + 1));
      first_unit.try_emplace(from.substr(0, bytes), next);
    }
  }
  std::vector<std::uint32_t> units(256 * (first_unit.size() + 1));
  std::string texts;
  for (const auto& [prefix, children] : first_unit) {
    const auto entry = entries.find(prefix);
    const std::uint32_t leaf = entry == entries.end() ? 0 : 1, label = prefix.empty() ? 0 : prefix.back() & 0xFF;
    const std::uint32_t at = prefix.empty() ? 0 : first_unit.at(prefix.substr(0, prefix.size() - 1)) + label;
    units[at] = (at ^ children) << 10 | leaf << 8 | label;
    if (leaf == 0) continue;
    units[children] = 0x80000000U | static_cast<std::uint32_t>(texts.size());
    texts += entry->second + '\0';
  }
  base::ByteWriter out;
  out.number(static_cast<std::uint32_t>(units.size() * sizeof(std::uint32_t)));
  for (const std::uint32_t unit : units) out.number(unit);
  return out.take() + texts;
}

/// A field of a Protocol Buffers message that holds a string, bytes or a message.
inline std::string message_field(std::uint64_t number, std::string_view payload) {
  base::ByteWriter out;
  out.varint(number << 3 | 2);
  out.text(payload);
  return out.take();
}

/// The bytes of a unigram SentencePiece model with the pieces <pad>, </s>, <unk> (ids 0 to 2) and then `pieces`, all
/// equally likely, and a map of characters.
inline std::string sentencepiece_model_bytes(const std::vector<std::string>& pieces, std::string_view character_map) {
  enum PieceType : std::uint64_t { normal = 1, unknown = 2, control = 3 };
  std::string model;
  const auto add = [&model](std::string_view text, PieceType type) {
    base::ByteWriter piece;
    piece.bytes(message_field(1, text));
    piece.varint(2 << 3 | 5);
    piece.number(-1.0F);  // its score
    piece.varint(3 << 3);
    piece.varint(type);
    model += message_field(1, piece.take());
  };
  add("<pad>", control);
  add("</s>", control);
  add("<unk>", unknown);
  for (const std::string& piece : pieces) add(piece, normal);
  return model + message_field(3, message_field(1, "small") + message_field(2, character_map));
}

}  // namespace troupe::testing
