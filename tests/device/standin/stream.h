#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/device/standin/access_log.h"
#include "tests/device/standin/clock.h"

namespace troupe::device::standin {

/// What one recording of an event stands for.
struct Point {
  bool is_done = false;
  VectorClock clock;
};
using PointPtr = std::shared_ptr<Point>;

/// One entry of a stream: an operation, the recording of a point, or a wait for one.
struct Item {
  std::string name = {};
  /// Runs the operation and adds what it touched.
  std::function<void(std::vector<Access>&)> run = nullptr;
  PointPtr records = nullptr, awaits = nullptr;
  /// Of an operation that others outside take part in: goes on with it, and says whether it can end.
  std::function<bool()> is_ready = nullptr;
  /// What the host had seen when it enqueued the item.
  VectorClock after = {};
};

struct Capture;

/// A stream of a device, or one of a graph that runs: items in order.
struct Stream {
  std::uint32_t number = 0;
  int device = 0;
  /// Gone once its items have run.
  bool is_of_graph = false;
  std::deque<Item> items = {};
  VectorClock clock = {};
  /// Operations that have ended.
  std::uint32_t ended = 0;
  /// While it is captured: where its items go, and which of the graph's lists is its own.
  std::shared_ptr<Capture> capture = nullptr;
  std::size_t list = 0;
};

/// The items of a graph, a list for each stream that was captured, the first of which began. Their points belong to
/// the graph alone; a launch makes others.
struct Graph {
  std::vector<std::vector<Item>> lists;
};

/// A capture that goes on.
struct Capture {
  /// That began it: what other threads call meanwhile is their own matter.
  std::thread::id thread;
  Graph graph;
  /// The captured streams, and the vector clock of each at its next item; indexes are those of graph.lists.
  std::vector<Stream*> streams;
  std::vector<VectorClock> clocks;
  /// A call that no capture allows was made.
  bool is_broken = false;
  bool is_over = false;
};

struct Event {
  PointPtr point;
  /// Recorded within that capture, if any.
  std::shared_ptr<Capture> capture;
};

}  // namespace troupe::device::standin
