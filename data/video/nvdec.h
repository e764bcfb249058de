#pragma once

#include <string>

#include "base/result.h"
#include "data/video/ffmpeg.h"
#include "data/video/packet_table.h"

namespace troupe::data {

/// NVIDIA's hardware decoder through FFmpeg's hwaccel: data.decoder.backend nvdec. The codec runs on the first visible
/// GPU; frames come back as NV12 and are made planar, so that the other side sees what the CPU decoders give.
/// Internal to ClipDecoder.

/// Errors: failed_precondition when this machine has no NVIDIA GPU or driver, or FFmpeg was built without CUDA.
Result<void> check_nvdec();

/// A context that decodes the table's stream on the GPU.
/// Errors: those of check_nvdec; invalid_argument when FFmpeg cannot decode the codec with CUDA.
Result<AvCodecContext> open_nvdec(const std::string& path, const PacketTable& table);

/// True after the GPU turned down the stream (Hopper and GA100 decode no AV1): the context gives no frame then.
bool nvdec_refused(const AVCodecContext& context);
/// What to say about it. Code invalid_argument.
/// Names the codec, the file and data.decoder.backend.
Error nvdec_refusal(const std::string& path, const AVCodecContext& context);

/// Replaces a frame in GPU memory by a planar one in host memory; others stay as they are.
/// Errors: resource_exhausted, unavailable (the copy failed).
Result<void> fetch_from_gpu(const std::string& path, AVFrame& frame);

/// Copies NV12 (one interleaved chroma plane) to a yuv420p frame of the same size, whose buffers exist.
void split_chroma(const AVFrame& nv12, AVFrame& planar);

}  // namespace troupe::data
