#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/index/sample_table.h"

namespace troupe::data {

/// The summary and metadata sections of a samples-*.idx as bytes (base/byte_stream.h: varints, length-prefixed texts,
/// doubles as they are). docs/dataset-index.md has the order of the fields.
std::string encode_summary(const SampleSummary& summary);
std::string encode_metadata(const std::vector<MetadataFile>& files);

/// What the functions above wrote; every count is checked against the bytes that are left, so damaged bytes cannot
/// claim more memory than they have. Errors: data_loss.
Result<SampleSummary> decode_summary(std::span<const std::byte> bytes);
Result<std::vector<MetadataFile>> decode_metadata(std::span<const std::byte> bytes);

}  // namespace troupe::data
