#pragma once

#include <cstdint>

#include "base/namespaces.h"

namespace troupe::base {

/// Written into manifests and printed by --version.
inline constexpr const char* kTroupeVersion = "0.1.0";

/// Raise it with every change after which one sample (dataset, seed, position) has other bytes: decoding, augmentation,
/// tokens, features, the layout of a slot, the random streams behind them. Nodes of one job must agree on it, because
/// any of them may make any sample.
inline constexpr std::uint64_t kSampleRevision = 1;

}  // namespace troupe::base
