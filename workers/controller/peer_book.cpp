#include "workers/controller/peer_book.h"

namespace troupe::workers {

void PeerBook::joined(const std::string& node, std::int64_t rank) {
  const std::lock_guard lock(mutex_);
  ranks_[node] = rank;
}

void PeerBook::placed(const std::string& actor, std::int64_t incarnation, std::int64_t rank) {
  const std::lock_guard lock(mutex_);
  nodes_[actor][incarnation] = rank;
}

std::optional<std::int64_t> PeerBook::rank_of(const std::string& node) const {
  const std::lock_guard lock(mutex_);
  const auto found = ranks_.find(node);
  return found == ranks_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::int64_t> PeerBook::node_of(const std::string& actor) const {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(actor);
  return found == nodes_.end() ? std::nullopt : std::optional(found->second.rbegin()->second);
}

std::optional<std::int64_t> PeerBook::node_of(const std::string& actor, std::int64_t incarnation) const {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(actor);
  if (found == nodes_.end()) return std::nullopt;
  const auto start = found->second.find(incarnation);
  return start == found->second.end() ? std::nullopt : std::optional(start->second);
}

}  // namespace troupe::workers
