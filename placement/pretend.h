#pragma once

#include <string_view>

#include "base/result.h"
#include "placement/plan.h"

namespace troupe::placement {

/// A cluster described in one word, for `troupe plan --pretend`.
///
///     [NODES x] [DEVICES x] MODEL [-MEMORYG]      8xH200, 2x8xH100-80G, L40S-48G
///     [NODES x] cpuCORES -MEMORYG                 cpu16-64G, 4xcpu32-128G
///
/// One count before a device model is its devices per node; two are nodes, then devices; x may be X. MEMORY is GiB per
/// device or, for cpu, per node; GB is taken for G. Models of known_devices.h need no memory; blanks do not count. A
/// node with devices is given 24 cores and 256 GiB per device. Nodes are named node0, node1, ...
/// Errors: invalid_argument for a malformed word, or an unknown model without memory (lists the known ones).
Result<ClusterSnapshot> pretend_cluster(std::string_view text);

}  // namespace troupe::placement
