#pragma once

#include <optional>
#include <string>

#include "workers/decoder/loader/loader_result.h"
#include "workers/decoder/loader/reencodings.h"

namespace troupe::workers {

/// What surrounds a measurement.
struct LoaderContext {
  /// What was named on the command line.
  std::string source{};
  std::int64_t episodes = 0, windows = 0, cores = 0;
  /// Time that opening the datasets took.
  double open_seconds = 0;
  /// What coding the videos anew would bring, where frames hold the loader back; else why that was not tried, if so.
  std::optional<Reencodings> reencodings{};
  std::string not_tried{};
};

/// The result as a table for people, the last line naming the bottleneck.
std::string loader_text(const LoaderResult& result, const LoaderContext& context);
/// The result as one JSON object on one line (docs/loader.md lists its keys).
std::string loader_json(const LoaderResult& result, const LoaderContext& context);

}  // namespace troupe::workers
