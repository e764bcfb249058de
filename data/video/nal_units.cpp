#include "data/video/nal_units.h"

#include <algorithm>
#include <vector>

#include "data/video/ffmpeg.h"

namespace troupe::data {

namespace {

using CodedBytes = std::span<const std::uint8_t>;

/// Does an H.264 SEI unit hold a recovery point from which on all shown frames are exact?
bool exact_recovery_point(CodedBytes unit) {
  std::vector<std::uint8_t> payload;  // without the header byte and the emulation prevention bytes (7.3.1)
  int zeros = 0;
  for (const std::uint8_t byte : unit.subspan(1)) {
    if (zeros >= 2 && byte == 3) {
      zeros = 0;
      continue;
    }
    zeros = byte == 0 ? zeros + 1 : 0;
    payload.push_back(byte);
  }
  // sei_message: type and size are sums of bytes, 255 means that more follow
  for (std::size_t at = 0; at + 2 < payload.size();) {
    std::size_t numbers[2] = {};  // type, size
    for (std::size_t& number : numbers) {
      while (at < payload.size() && payload[at] == 255) number += payload[at++];
      if (at < payload.size()) number += payload[at++];
    }
    constexpr std::size_t kRecoveryPoint = 6;
    // recovery_frame_cnt ue(v), exact_match_flag u(1): a count of 0 is one set bit
    if (numbers[0] == kRecoveryPoint) return numbers[1] > 0 && at < payload.size() && payload[at] >> 6 == 3;
    at += std::min(numbers[1], payload.size() - at);
  }
  return false;
}

/// Takes the first OBU off an AV1 sample; false when it does not hold a whole one.
bool skip_obu(CodedBytes& sample) {
  const std::uint8_t header = sample.front();
  std::size_t at = (header & 4) != 0 ? 2 : 1;  // obu_extension_flag
  const int type = header >> 3 & 15;
  const bool is_known = (type >= 1 && type <= 8) || type == 15;  // AV1 6.2.2
  if ((header & 0x81) != 0 || !is_known) return false;           // obu_forbidden_bit, obu_reserved_1bit
  std::size_t length = sample.size() - std::min(at, sample.size());
  if ((header & 2) != 0) {  // obu_has_size_field: leb128()
    length = 0;
    for (int shift = 0;; shift += 7) {
      if (at >= sample.size() || shift > 28) return false;
      const std::uint8_t byte = sample[at++];
      length |= static_cast<std::size_t>(byte & 127) << shift;
      if ((byte & 128) == 0) break;
    }
  }
  if (at > sample.size() || length > sample.size() - at) return false;
  sample = sample.subspan(at + length);
  return true;
}

}  // namespace

NalReader::NalReader(const AVCodecParameters& codec) {
  // avcC (ISO/IEC 14496-15 5.2.4.1): version 1, three profile bytes, then six set bits and lengthSizeMinusOne;
  // hvcC (8.3.3.1) has it in its 22nd byte
  const bool h264 = codec.codec_id == AV_CODEC_ID_H264;
  hevc_ = codec.codec_id == AV_CODEC_ID_HEVC;
  av1_ = codec.codec_id == AV_CODEC_ID_AV1;
  const int place = h264 ? 4 : 21, smallest = h264 ? 7 : 23;
  if ((h264 || hevc_) && codec.extradata_size >= smallest && codec.extradata[0] == 1) {
    length_bytes_ = static_cast<std::size_t>(codec.extradata[place] & 3) + 1;
  }
}

/// Takes the first unit off `sample`; nothing when it does not hold a whole one.
std::optional<CodedBytes> NalReader::next_unit(CodedBytes& sample) const {
  if (length_bytes_ == 0 || sample.size() <= length_bytes_) return std::nullopt;
  std::size_t length = 0;
  for (std::size_t i = 0; i < length_bytes_; ++i) length = length << 8 | sample[i];
  if (length == 0 || length > sample.size() - length_bytes_) return std::nullopt;
  const CodedBytes unit = sample.subspan(length_bytes_, length);
  sample = sample.subspan(length_bytes_ + length);
  return unit;
}

bool NalReader::fill(CodedBytes sample) const {
  while (av1_ && !sample.empty()) {
    if (!skip_obu(sample)) return false;
  }
  while (length_bytes_ != 0 && !sample.empty()) {
    // a unit without a byte is odd, and codecs skip it
    const bool empty = sample.size() >= length_bytes_ &&
                       std::all_of(sample.begin(), sample.begin() + static_cast<std::ptrdiff_t>(length_bytes_),
                                   [](std::uint8_t byte) { return byte == 0; });
    if (empty)
      sample = sample.subspan(length_bytes_);
    else if (!next_unit(sample))
      return false;
  }
  return true;
}

bool NalReader::is_disposable(CodedBytes sample) const {
  if (length_bytes_ == 0 || hevc_) return false;
  bool has_slice = false;
  while (!sample.empty()) {
    const auto unit = next_unit(sample);
    if (!unit) return false;
    const int type = unit->front() & 31, ref_idc = unit->front() >> 5 & 3;
    if (type >= 1 && type <= 5) {
      if (ref_idc != 0) return false;
      has_slice = true;
    } else if (type == 7 || type == 8) {
      return false;  // parameter sets matter to what follows
    }
  }
  return has_slice;
}

EntryPoint NalReader::entry_point(CodedBytes sample) const {
  if (length_bytes_ == 0) return EntryPoint::whole;
  bool recovers = false;
  while (const auto unit = next_unit(sample)) {
    if (hevc_) {
      const int type = unit->front() >> 1 & 63;
      if (type >= 16 && type <= 23)
        return EntryPoint::whole;  // random access pictures; the codec drops what leads them
      if (type < 16) return EntryPoint::none;
      continue;
    }
    const int type = unit->front() & 31;
    if (type == 5) return EntryPoint::whole;
    if (type == 6) recovers = recovers || exact_recovery_point(*unit);
    if (type >= 1 && type <= 4) return recovers ? EntryPoint::open_group : EntryPoint::none;
  }
  return EntryPoint::whole;  // no picture was found: the codec will say what is wrong with it
}

}  // namespace troupe::data
