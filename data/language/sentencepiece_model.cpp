// The few fields needed of sentencepiece_model.proto, read from the wire format of Protocol Buffers: Debian's package
// has no header for the model's message.
#include "data/language/sentencepiece_model.h"

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string_view>

#include "base/byte_stream.h"
#include "base/mapped_file.h"

namespace troupe::data {
namespace {

// fields of ModelProto and, in it, of NormalizerSpec
constexpr std::uint64_t kNormalizerSpec = 3, kSelfTestData = 4, kPrecompiledCharsmap = 2;

// wire types, the low three bits of a field's key
constexpr std::uint64_t kVarint = 0, kEightBytes = 1, kLengthDelimited = 2, kFourBytes = 5;

struct MessageField {
  std::uint64_t number = 0;
  std::string_view payload;  // of strings, bytes and messages; empty for numbers
};

/// The next field; the reader fails on what is none.
MessageField read_field(ByteReader& in) {
  const std::uint64_t key = in.varint();
  MessageField field{.number = key >> 3, .payload = {}};
  switch (key & 7) {
    case kVarint:
      in.varint();
      break;
    case kEightBytes:
      in.take(8);
      break;
    case kLengthDelimited:
      field.payload = in.text();
      break;
    case kFourBytes:
      in.take(4);
      break;
    default:
      in.fail();
  }
  return field;
}

/// The map of a NormalizerSpec, or `none` where it has none; of a field that is there twice the last one counts.
std::string_view find_character_map(std::string_view normalizer_spec, std::string_view none) {
  ByteReader in(std::as_bytes(std::span(normalizer_spec)));
  std::string_view map = none;
  while (in.left() > 0) {
    const MessageField field = read_field(in);
    if (in.ok() && field.number == kPrecompiledCharsmap) map = field.payload;
  }
  return map;
}

}  // namespace

Result<SentencePieceModel> read_sentencepiece_model(const std::string& path) {
  TROUPE_ASSIGN(const MappedFile file, MappedFile::open(path, 1));
  const std::string_view bytes(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  ByteReader in(file.bytes());
  std::string_view map;
  SentencePieceModel model;
  model.without_map.reserve(bytes.size());
  while (in.left() > 0) {
    const std::size_t begin = bytes.size() - in.left();
    const MessageField field = read_field(in);
    if (!in.ok()) {
      return Error{Errc::data_loss, fmt::format("{} is no Protocol Buffers message from byte {} on", path, begin)};
    }
    if (field.number == kNormalizerSpec) map = find_character_map(field.payload, map);
    if (field.number != kSelfTestData) model.without_map += bytes.substr(begin, bytes.size() - in.left() - begin);
  }
  model.character_map = map;

  // a message that occurs twice is merged, and of a field that is there twice the last one counts
  ByteWriter no_map;
  no_map.varint(kPrecompiledCharsmap << 3 | kLengthDelimited);
  no_map.text("");
  ByteWriter spec;
  spec.varint(kNormalizerSpec << 3 | kLengthDelimited);
  spec.text(no_map.take());
  model.without_map += spec.take();
  return model;
}

}  // namespace troupe::data
