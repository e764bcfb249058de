#pragma once

#include <cstdint>
#include <string>

#include "base/namespaces.h"

namespace troupe::comm {

// What the command line asks of a running controller; as in comm/control/messages.h.

/// Command line -> controller: change the size of a pool.
/// target is the new number of actors; dry_run only prints what would change. Answered with Reply.
struct Scale {
  static constexpr std::uint16_t kType = 0x54;
  std::string pool;
  std::int64_t target = 0;
  bool dry_run = false;
  template <class V>
  void fields(V& v) {
    v(1, pool);
    v(2, target);
    v(3, dry_run);
  }
};
/// Command line -> controller: what runs where.
struct StatusQuery {
  static constexpr std::uint16_t kType = 0x52;
  template <class V>
  void fields(V&) {}
};
/// Command line -> controller: stop after a checkpoint; `now`: without one.
struct StopJob {
  static constexpr std::uint16_t kType = 0x53;
  bool now = false;
  template <class V>
  void fields(V& v) {
    v(1, now);
  }
};
/// controller -> command line: JSON text, or an error sentence with code 2 or 3.
struct Reply {
  static constexpr std::uint16_t kType = 0x8052;
  std::int64_t code = 0;
  std::string text;
  template <class V>
  void fields(V& v) {
    v(1, code);
    v(2, text);
  }
};

}  // namespace troupe::comm
