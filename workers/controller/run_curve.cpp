#include "workers/controller/run_curve.h"

#include <algorithm>
#include <cmath>

namespace troupe::workers {

void RunCurve::Bucket::add(Point point) {
  if (!std::isfinite(point.value)) {
    ++not_finite;
    return;
  }
  if (!lowest || point.value < lowest->value) lowest = point;
  if (!highest || point.value > highest->value) highest = point;
}

void RunCurve::Bucket::add(const Bucket& other) {
  const std::int64_t both = not_finite + other.not_finite;
  for (const auto& point : {other.lowest, other.highest}) {
    if (point) add(*point);
  }
  not_finite = both;
}

void RunCurve::add(Point point) {
  if (ends_off_grid_) points_.pop_back();
  points_.push_back(point);
  ends_off_grid_ = count_++ % stride_ != 0;
  if (!ends_off_grid_) buckets_.emplace_back();
  buckets_.back().add(point);
  recent_.push_back(point);
  if (recent_.size() > kRecent) recent_.pop_front();
  if (first_.size() < kFirst && std::isfinite(point.value)) first_.push_back(point);
  if (points_.size() > kMostPoints - 1) thin();
}

void RunCurve::thin() {
  const Point newest = points_.back();
  std::size_t kept = 0;
  for (std::size_t i = 0; i < grid_size(); ++i) {
    if (i % 2 == 0) {
      points_[kept] = points_[i];
      buckets_[kept++] = buckets_[i];
    } else {
      buckets_[kept - 1].add(buckets_[i]);
    }
  }
  const bool newest_stays = !ends_off_grid_ && grid_size() % 2 == 1;
  points_.resize(kept);
  buckets_.resize(kept);
  stride_ *= 2;
  ends_off_grid_ = !newest_stays;
  if (ends_off_grid_) points_.push_back(newest);
}

void RunCurve::roll_back(std::int64_t step) {
  const auto is_later = [&](const Point& p) { return p.step > step; };
  if (points_.empty() || !is_later(points_.back())) return;
  if (ends_off_grid_) points_.pop_back();
  ends_off_grid_ = false;
  std::erase_if(points_, is_later);
  std::erase_if(recent_, is_later);
  std::erase_if(first_, is_later);
  buckets_.resize(points_.size());
  count_ = points_.empty() ? 0 : (points_.size() - 1) * stride_ + 1;
  if (points_.empty()) return;
  // The last bucket had points on both sides of the step.
  Bucket& last = buckets_.back();
  const Bucket whole = last;
  const Point begin = points_.back();
  last = {};
  last.add(begin);
  for (const auto& extreme : {whole.lowest, whole.highest}) {
    if (extreme && !is_later(*extreme)) last.add(*extreme);
  }
  for (const Point& point : recent_) {
    if (point.step <= begin.step) continue;
    last.add(point);
    ++count_;
    if (ends_off_grid_) points_.pop_back();
    points_.push_back(point);
    ends_off_grid_ = true;
  }
}

std::optional<RunCurve::Point> RunCurve::lowest() const {
  std::optional<Point> found;
  for (const Bucket& bucket : buckets_) {
    if (bucket.lowest && (!found || bucket.lowest->value < found->value)) found = bucket.lowest;
  }
  return found;
}

std::optional<RunCurve::Point> RunCurve::highest() const {
  std::optional<Point> found;
  for (const Bucket& bucket : buckets_) {
    if (bucket.highest && (!found || bucket.highest->value > found->value)) found = bucket.highest;
  }
  return found;
}

std::int64_t RunCurve::not_finite() const {
  std::int64_t count = 0;
  for (const Bucket& bucket : buckets_) count += bucket.not_finite;
  return count;
}

}  // namespace troupe::workers
