#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/namespaces.h"

namespace troupe::workers {

/// Which node has which rank, and on which node each actor was placed: what a message's receiver checks a peer's words
/// against. The controller writes it before the message that tells a node so. Thread-safe.
class PeerBook {
 public:
  /// The node of this name has joined as this rank.
  void joined(const std::string& node, std::int64_t rank);
  /// Spawn of this start of the actor goes to the node of this rank.
  void placed(const std::string& actor, std::int64_t incarnation, std::int64_t rank);

  std::optional<std::int64_t> rank_of(const std::string& node) const;
  /// The node of an actor's newest start.
  std::optional<std::int64_t> node_of(const std::string& actor) const;
  /// The node of one start of it.
  std::optional<std::int64_t> node_of(const std::string& actor, std::int64_t incarnation) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::int64_t> ranks_;
  // By actor and incarnation; one entry a start, as the actor table counts them.
  std::map<std::string, std::map<std::int64_t, std::int64_t>> nodes_;
};

}  // namespace troupe::workers
