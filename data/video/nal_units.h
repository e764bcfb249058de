#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

struct AVCodecParameters;

namespace troupe::data {

/// Tells which H.264 samples nothing refers to. Internal to ClipDecoder.
class NalReader {
 public:
  /// For other codecs than H.264, or extradata that is no avcC record, every sample counts as needed.
  explicit NalReader(const AVCodecParameters& codec);
  /// True when every slice of the sample has nal_ref_idc 0 (ITU-T H.264 7.4.1): leaving it out changes no other
  /// frame.
  /// `sample` is one coded frame as it lies in the MP4 file: NAL units behind their length prefixes.
  bool is_disposable(std::span<const std::uint8_t> sample) const;

 private:
  // Of a NAL unit's length prefix; 0: unknown.
  std::size_t length_bytes_ = 0;
};

}  // namespace troupe::data
