#include "data/video/nal_units.h"

#include "data/video/ffmpeg.h"

namespace troupe::data {

NalReader::NalReader(const AVCodecParameters& codec) {
  // avcC (ISO/IEC 14496-15 5.2.4.1): version 1, three profile bytes, then six set bits and lengthSizeMinusOne
  if (codec.codec_id == AV_CODEC_ID_H264 && codec.extradata_size >= 7 && codec.extradata[0] == 1) {
    length_bytes_ = static_cast<std::size_t>(codec.extradata[4] & 3) + 1;
  }
}

bool NalReader::is_disposable(std::span<const std::uint8_t> sample) const {
  if (length_bytes_ == 0) return false;
  bool has_slice = false;
  while (!sample.empty()) {
    if (sample.size() <= length_bytes_) return false;
    std::size_t length = 0;
    for (std::size_t i = 0; i < length_bytes_; ++i) length = length << 8 | sample[i];
    if (length == 0 || length > sample.size() - length_bytes_) return false;
    const std::uint8_t header = sample[length_bytes_];
    const int type = header & 31, ref_idc = header >> 5 & 3;
    if (type >= 1 && type <= 5) {
      if (ref_idc != 0) return false;
      has_slice = true;
    } else if (type == 7 || type == 8) {
      return false;  // parameter sets matter to what follows
    }
    sample = sample.subspan(length_bytes_ + length);
  }
  return has_slice;
}

}  // namespace troupe::data
