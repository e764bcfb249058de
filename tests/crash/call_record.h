#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tests/crash/crash_file_system.h"

namespace troupe::testing {

/// One change or sync. Nodes are files, folders and links by a number that is never used again, unlike an inode's.
struct RecordedCall {
  enum class Kind : std::uint8_t { write, truncate, sync, make, rename, exchange, remove };
  Kind kind = Kind::write;
  /// write, truncate, sync: what changes. make, rename, remove: the folder.
  std::size_t node = 0;
  std::string name = {};
  /// make: what gets the name. rename, exchange: the folder of the new name.
  std::size_t other = 0;
  std::string new_name = {};
  std::uint64_t offset = 0;  ///< write; truncate: the length
  std::string bytes = {};
};

/// What the calls of crash_calls.cpp write into.
struct CrashFileSystem::Record {
  enum class Type : std::uint8_t { file, folder, link };
  struct Node {
    Type type = Type::file;
    std::string target = {};  ///< of a link
  };

  /// The one that exists; null: none, or it was stopped.
  static Record* active();
  static void activate(Record* record);

  /// Node of an inode, 0 where it is not below the root.
  std::size_t find(dev_t device, ino_t inode) const;
  /// A node for a file, folder or link that has just been made.
  std::size_t add(dev_t device, ino_t inode, Node node);

  std::recursive_mutex mutex;
  dev_t device = 0;
  std::map<ino_t, std::size_t> nodes_by_inode;
  std::vector<Node> nodes;  ///< [0] is nobody, [1] the root
  std::vector<RecordedCall> calls;
  std::size_t first_call = 0;  ///< those before it stand for what was there
};

}  // namespace troupe::testing
