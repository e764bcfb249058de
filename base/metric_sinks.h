#pragma once

#include <memory>
#include <string>

#include "base/metrics.h"

namespace troupe::base {

/// One line per step: {"step":1,"wall":1.8e9,"samples":8,"m":{"train/loss":0.5}}. Numbers have the digits that read
/// back to the same double; non-finite ones are the strings "NaN", "Infinity", "-Infinity". An existing file is
/// continued; a line that a killed process left unfinished is cut off first.
/// Errors: those of AppendFile::open.
Result<std::unique_ptr<MetricSink>> make_jsonl_sink(const std::string& path);

/// Long format, so that metrics may appear at any time: header `step,wall,samples,name,value`, one line per metric and
/// step. Non-finite values as above, without quotes. Continues like the JSON lines.
/// Names with a comma, a quote or a line break are quoted as in RFC 4180. Errors: those of AppendFile::open.
Result<std::unique_ptr<MetricSink>> make_csv_sink(const std::string& path);

}  // namespace troupe::base
