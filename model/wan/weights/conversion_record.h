#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "model/io/tensor_source.h"
#include "model/wan/weights/convert_plan.h"

namespace troupe::model {

/// `conversion.json`: what is being converted into a folder and which of its files are finished.
struct ConversionRecord {
  std::map<std::string, std::string> request;   ///< layout, dtype, ... and the source's fingerprint
  std::map<std::string, std::string> finished;  ///< path below the folder -> XXH3-128

  friend bool operator==(const ConversionRecord&, const ConversionRecord&) = default;
};

/// XXH3-128 over every tensor's name, dtype, shape and first and last 4096 bytes, in the order of names.
Result<std::string> source_fingerprint(const TensorSource& source);

/// The record of a conversion at its begin.
Result<ConversionRecord> begin_record(const TensorSource& source, const std::vector<PlannedCheckpoint>& plan,
                                      const ConvertRequest& request);

/// Errors: not_found; data_loss when the file is not such a record.
Result<ConversionRecord> read_record(const std::string& folder);
Result<void> write_record(const std::string& folder, const ConversionRecord& record);

/// What a folder has of this conversion: `fresh` without a record, else the folder's, whose request must be equal.
/// Errors: failed_precondition naming what differs, or a file that stands where the result belongs.
Result<ConversionRecord> resume_record(const std::string& folder, const ConversionRecord& fresh,
                                       const std::vector<PlannedCheckpoint>& plan);

}  // namespace troupe::model
