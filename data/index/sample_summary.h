#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/index/sample_table.h"

namespace troupe {

/// The summary and metadata sections of a samples-*.idx as bytes.
std::string encode_summary(const SampleSummary& summary);
std::string encode_metadata(const std::vector<MetadataFile>& files);

/// What the functions above wrote. Errors: data_loss.
Result<SampleSummary> decode_summary(std::span<const std::byte> bytes);
Result<std::vector<MetadataFile>> decode_metadata(std::span<const std::byte> bytes);

}  // namespace troupe
