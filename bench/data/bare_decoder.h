#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/namespaces.h"
#include "bench/data/decode_clips.h"
#include "data/video/ffmpeg.h"
#include "image/video_frame.h"

namespace troupe::bench {

/// XXH3 of the pixels of the three planes.
std::uint64_t hash_of(const Yuv420View& frame);

/// What decoding costs when nothing but libavcodec runs: the packets from the key frame before a clip to its last
/// wanted frame, without disposable ones that nobody wants, lie in memory; one open context decodes them; frames are
/// counted and released. No file, no seek, no colour conversion: the floor under every decoder that feeds these
/// packets.
class BareDecoder {
 public:
  /// Reads all packets of the file. Throws std::runtime_error.
  void load(const std::string& path);
  /// Decodes the clip and returns how many wanted frames came out.
  std::int64_t decode(const DecodeClip& clip);
  /// XXH3 of the planes of every frame of the file, decoded from its first packet to its last.
  std::vector<std::uint64_t> hashes(const std::string& path);
  std::int64_t fed() const { return fed_; }

 private:
  struct File {
    std::vector<AvPacket> packets;  ///< decode order; pts is the presentation index
    std::vector<bool> disposable;
    std::vector<std::size_t> place;  ///< presentation index -> packet
    AvCodecContext codec;
  };
  std::map<std::string, File> files_;
  AvFrame frame_{av_frame_alloc()};
  std::int64_t fed_ = 0;
};

}  // namespace troupe::bench
