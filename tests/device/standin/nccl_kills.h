#pragma once

#include <cstdint>
#include <string>

namespace troupe::device::standin {

/// Kills a process of a job again and again, while an operation of NCCL is under way: this rank's part is sent, its
/// peers' is not received. What is counted lies in a file that all processes of the job map.
class NcclKills {
 public:
  /// `words`: "FILE EVERY COUNT"; empty: none. The file is made if it does not exist. Throws std::system_error.
  explicit NcclKills(const std::string& words);
  NcclKills(const NcclKills&) = delete;
  NcclKills& operator=(const NcclKills&) = delete;

  /// Counts an operation of several ranks, and does not return from every EVERYth, COUNT times.
  void count_operation();
  std::uint64_t kills() const;

 private:
  struct Counts;
  Counts* counts_ = nullptr;
  std::uint64_t every_ = 0, most_ = 0;
};

}  // namespace troupe::device::standin
