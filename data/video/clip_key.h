#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "data/video/open_file.h"
#include "data/video/sample_reader.h"

namespace troupe::data {

/// Name of a clip by its content: XXH3-128, 32 hexadecimal digits, over everything that the decoded frames depend on
/// (codec and its version, size, colour tags, extradata, the bytes of every coded frame that is fed, which of them
/// are wanted) and nothing else. Names, times and places of the file do not matter, so that copies and conversions of a
/// dataset share their clips, and a file that changed in place never gets another one's frames. It costs reading the
/// coded bytes, a fraction of a per cent of decoding them.
/// `ranks`: ascending presentation indices. `bytes_read` grows by the bytes that were read. Errors: those of
/// SampleReader::next.
Result<std::string> clip_key(const std::shared_ptr<const OpenFile>& file, std::span<const std::int64_t> ranks,
                             ReadThread& thread, const SampleReader::Options& options, std::int64_t& bytes_read);

}  // namespace troupe::data
