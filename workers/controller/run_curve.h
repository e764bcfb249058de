#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace troupe::workers {

/// One metric of a run over its steps, in bounded memory however long the run is. Not thread-safe.
class RunCurve {
 public:
  struct Point {
    std::int64_t step = 0;
    double value = 0;
  };
  /// Most points that are kept of a curve, and the newest of them that recent() has.
  static constexpr std::size_t kMostPoints = 10'000, kRecent = 256, kFirst = 64;

  void add(Point point);
  /// Points above `step` will come again. What is left is exact where the rollback is not longer than kRecent points;
  /// of a longer one the newest point that is left is the last one that thinning kept.
  void roll_back(std::int64_t step);

  /// In the order in which they came: all, or every 2nd, 4th, 8th... of them; always the first and the newest.
  const std::vector<Point>& points() const { return points_; }
  /// The newest, none left out.
  const std::deque<Point>& recent() const { return recent_; }
  /// The first kFirst whose values are finite.
  const std::vector<Point>& first() const { return first_; }
  /// Of all finite values that came, thinned away or not; nothing: there are none.
  std::optional<Point> lowest() const;
  std::optional<Point> highest() const;
  /// Values that are infinite or no number.
  std::int64_t not_finite() const;

 private:
  /// What came from one point of the grid to the next.
  struct Bucket {
    std::optional<Point> lowest = {}, highest = {};
    std::int64_t not_finite = 0;
    void add(Point point);
    void add(const Bucket& other);
  };
  /// Points that are on the grid, which is every stride_-th.
  std::size_t grid_size() const { return points_.size() - (ends_off_grid_ ? 1 : 0); }
  /// Every second point of the grid goes.
  void thin();

  std::vector<Point> points_;
  // One for each point of the grid.
  std::vector<Bucket> buckets_;
  std::deque<Point> recent_;
  std::vector<Point> first_;
  std::size_t count_ = 0, stride_ = 1;
  // The newest point is kept because it is the newest.
  bool ends_off_grid_ = false;
};

}  // namespace troupe::workers
