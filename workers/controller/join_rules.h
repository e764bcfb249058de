#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/version.h"
#include "comm/control/messages.h"

namespace troupe::workers {

/// What must be equal on all nodes of a job beside its configuration: control messages that both sides understand, and
/// code that makes the same bytes of the same sample.
inline constexpr std::uint64_t kJoinProtocol = 1;

/// Longest name of a node: with its incarnation and the number of its connection it is a routing id of 64 bytes.
inline constexpr std::size_t kLongestNodeName = 40;

/// What a process is told whose name a newer one has taken.
std::string taken_over(const std::string& name);

/// Of this program; written into Join.
void describe_build(Join& join);

/// Whether a node like that may join this one's job. Errors: invalid_argument (an empty name or one over
/// kLongestNodeName, no cpus; another protocol or sample revision: says both).
Result<void> check_join(const Join& join);

/// Whether a node under a name that `owner` has (a public key; empty: no CURVE) may be the one that asks. Errors:
/// invalid_argument (another key).
Result<void> check_owner(const Join& join, const std::string& owner);

}  // namespace troupe::workers
