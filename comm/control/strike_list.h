#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <string>

namespace troupe::comm {

/// Peers that send malformed messages: ten within 60 s, and everything from that peer is ignored for 60 s
/// (docs/wire.md#frames). Time is what the caller says it is. Not thread-safe.
class StrikeList {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::size_t kStrikes = 10;
  static constexpr std::chrono::seconds kWindow{60};
  static constexpr std::chrono::seconds kQuarantine{60};

  /// Notes a malformed message. Returns true when this one puts the peer into quarantine.
  bool strike(const std::string& peer, Time now) {
    if (peers_.size() >= kMaxPeers && !peers_.contains(peer)) peers_.clear();  // names are chosen by peers: bounded
    Peer& p = peers_[peer];
    p.strikes.push_back(now);
    while (now - p.strikes.front() > kWindow) p.strikes.pop_front();
    if (p.strikes.size() < kStrikes) return false;
    p.strikes.clear();
    p.until = now + kQuarantine;
    return true;
  }

  bool is_quarantined(const std::string& peer, Time now) const {
    if (peers_.empty()) return false;
    const auto it = peers_.find(peer);
    return it != peers_.end() && now < it->second.until;
  }

 private:
  static constexpr std::size_t kMaxPeers = 1024;
  struct Peer {
    std::deque<Time> strikes;
    Time until{};
  };
  std::map<std::string, Peer> peers_;
};

}  // namespace troupe::comm
