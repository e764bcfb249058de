#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "data/video/packet_table.h"

namespace troupe::data {

/// The codec parameters of a packet table as bytes that do not depend on FFmpeg's version: names in place of its
/// numbers. Files of one recording setup give equal bytes, so an index keeps them once; the bit rate, which differs
/// from file to file, is left out. docs/dataset-index.md, "Codec".
std::string encode_codec(const PacketTable& table);

/// What encode_codec wrote.
struct DecodedCodec {
  /// As PacketTable::codec.
  std::shared_ptr<const AVCodecParameters> parameters;
  /// FFmpeg's name, such as "h264".
  std::string name;
  /// As PacketTable::pix_fmt.
  std::string pix_fmt;
};
/// Errors: data_loss (damaged bytes, a codec that this FFmpeg does not know).
Result<DecodedCodec> decode_codec(std::span<const std::byte> bytes);

/// The samples of a packet table: 2 to 4 bytes a frame where they follow each other in the file and in time.
/// docs/dataset-index.md, "Packets".
/// Requires at least one sample.
std::string encode_packets(const PacketTable& table);

/// A table with the samples that encode_packets wrote, without codec. Every sample lies inside a file of `file_bytes`
/// bytes, ranks are a permutation. Errors: data_loss (damaged bytes).
Result<std::shared_ptr<PacketTable>> decode_packets(std::span<const std::byte> bytes, std::int64_t file_bytes);

}  // namespace troupe::data
