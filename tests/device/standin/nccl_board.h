#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file_descriptor.h"

namespace troupe::device::standin {

/// What one rank tells another of a message: both must mean the same.
struct Envelope {
  /// ncclSend, or a collective by its name
  std::uint32_t operation = 0;
  /// of a collective: the how-manieth of the communicator
  std::uint32_t number = 0;
  std::uint64_t bytes = 0;
  bool operator==(const Envelope&) const = default;
};

/// Where the ranks of a communicator leave messages for each other: files that all map, of processes or threads. One
/// message is on its way from each rank to each other. Not thread-safe.
class NcclBoard {
 public:
  static constexpr int kRanks = 8;

  /// Opens the files that begin with `path`, and leaves word that this rank is here. Throws std::system_error.
  NcclBoard(std::string path, int world, int rank);
  NcclBoard(const NcclBoard&) = delete;
  NcclBoard& operator=(const NcclBoard&) = delete;
  ~NcclBoard();

  int world() const { return world_; }
  int rank() const { return rank_; }
  /// Whether every rank has come. The files have no names from then on.
  bool is_complete();
  /// Whether a rank's process, or its board, is gone.
  bool is_gone(int rank) const;

  /// False while the message before is still there.
  bool send(int peer, const Envelope& envelope, std::span<const std::byte> bytes);
  /// The message that waits from a peer.
  std::optional<Envelope> peek(int peer) const;
  /// Takes it; `to` is as long as it is.
  void receive(int peer, std::span<std::byte> to);

 private:
  struct Mailbox {
    std::atomic<std::uint64_t> posted, taken;
    Envelope envelope;
  };
  struct Shared {
    std::atomic<std::uint32_t> arrived;
    Mailbox mail[kRanks][kRanks];
  };
  std::size_t place(int from, int to) const { return static_cast<std::size_t>(from * world_ + to); }
  std::string name_of(const char* what, int from, int to) const;

  const std::string path_;
  const int world_, rank_;
  bool is_named_ = true;
  base::FileDescriptor board_;
  Shared* shared_ = nullptr;
  /// of each rank, whose lock says that it lives
  std::vector<base::FileDescriptor> lives_;
  /// by place()
  std::vector<base::FileDescriptor> messages_;
};

}  // namespace troupe::device::standin
