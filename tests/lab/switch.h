#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <queue>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/file_descriptor.h"
#include "tests/lab/link.h"

namespace troupe::testing {

/// A switch for IPv4 packets between TUN devices, in a thread of its own: each packet goes to the port that has its
/// destination, when and as often as the link from port to port says. Thread-safe.
class Switch {
 public:
  explicit Switch(std::uint64_t seed);
  ~Switch();
  Switch(const Switch&) = delete;
  Switch& operator=(const Switch&) = delete;

  /// Takes over a TUN device without packet information, non-blocking. `address` in host order. An earlier port of that
  /// address is closed; its links stay.
  void plug(FileDescriptor tun, std::uint32_t address);
  void unplug(std::uint32_t address);

  /// What happens from now on to what `from` sends `to`; packets under way arrive as they were to.
  void set(std::uint32_t from, std::uint32_t to, const LinkFaults& faults);
  LinkCounts counts(std::uint32_t from, std::uint32_t to) const;

 private:
  using Address = std::uint32_t;
  using Bytes = std::vector<std::uint8_t>;
  struct Flight {
    Link::Time due;
    std::uint64_t number;  ///< those due at once leave in order
    Address to;
    std::shared_ptr<const Bytes> packet;
    bool operator<(const Flight& other) const {
      return std::pair(due, number) > std::pair(other.due, other.number);  // the earliest is the queue's top
    }
  };

  void run();
  void wait();
  void read_all();
  void take(Address from, const std::uint8_t* packet, std::size_t size, Link::Time now);
  void deliver_due();
  void wake() const;
  Link& link(Address from, Address to);

  const std::uint64_t seed_;
  const FileDescriptor wake_;
  mutable std::mutex mutex_;
  bool ended_ = false;
  std::map<Address, std::shared_ptr<FileDescriptor>> ports_;
  std::map<std::pair<Address, Address>, Link> links_;
  std::priority_queue<Flight> flights_;
  std::uint64_t numbers_ = 0;
  std::thread thread_;
};

}  // namespace troupe::testing
