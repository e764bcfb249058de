#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

struct AVCodecParameters;

namespace troupe::data {

/// Whether decoding may start at a sample that the container calls a key.
enum class EntryPoint : std::uint8_t {
  /// It may: an IDR picture (H.264), a random access picture (HEVC), every key of another codec.
  whole,
  /// It may for what is shown from here on, not for the frames that lead it: an H.264 recovery point.
  open_group,
  /// It may not: frames from here on refer to earlier ones (intra refresh, an I picture without a recovery point).
  none,
};

/// Reads the NAL units of H.264 and HEVC samples as they lie in an MP4 file, behind their length prefixes. Internal to
/// data.
class NalReader {
 public:
  /// For other codecs, or extradata that is no avcC or hvcC record, every sample counts as needed and every key as
  /// an entry point.
  explicit NalReader(const AVCodecParameters& codec);
  /// True when every slice of the H.264 sample has nal_ref_idc 0 (ITU-T H.264 7.4.1): leaving it out changes no other
  /// frame.
  bool is_disposable(std::span<const std::uint8_t> sample) const;
  /// Whether the key `sample` is an entry point. Of H.264's recovery points only those are whose frames are exact at
  /// once (recovery_frame_cnt 0, exact_match_flag 1; ITU-T H.264 D.2.8).
  EntryPoint entry_point(std::span<const std::uint8_t> sample) const;
  /// Whether its units fill the sample from its first byte to its last, as those of every whole sample of H.264, HEVC
  /// and AV1 do (there: the OBUs of AV1 5.3); true for other codecs.
  bool fill(std::span<const std::uint8_t> sample) const;

 private:
  std::optional<std::span<const std::uint8_t>> next_unit(std::span<const std::uint8_t>& sample) const;

  // Of a NAL unit's length prefix; 0: unknown.
  std::size_t length_bytes_ = 0;
  bool hevc_ = false;
  bool av1_ = false;
};

}  // namespace troupe::data
