#include "tests/lab/link.h"

#include <algorithm>

#include "base/random.h"

namespace troupe::testing {

std::vector<Link::Time> Link::departures(Time now, std::size_t bytes) {
  using std::chrono::microseconds;
  CounterRng rng(seed_, link_, packets_++);
  // All draws for every packet, whatever the settings: changing one fault leaves the others where they were.
  const double loss = rng.uniform(), duplicate = rng.uniform(), reorder = rng.uniform(), jitter = rng.uniform();
  ++counts_.offered;
  if (faults.cut) return ++counts_.cut, std::vector<Time>{};
  if (loss < faults.loss) return ++counts_.lost, std::vector<Time>{};

  Time ready = now;
  if (faults.bytes_per_second > 0) {
    if (free_at_ > now + faults.queue) return ++counts_.overflowed, std::vector<Time>{};
    const double seconds = static_cast<double>(bytes) / static_cast<double>(faults.bytes_per_second);
    ready = free_at_ = std::max(free_at_, now) + microseconds(static_cast<std::int64_t>(seconds * 1e6));
  }
  ready += faults.delay + microseconds(static_cast<std::int64_t>(jitter * static_cast<double>(faults.jitter.count())));
  if (reorder < faults.reorder) {
    ++counts_.reordered;
    ready += faults.reorder_by;
  } else {
    ready = last_ = std::max(ready, last_);
  }
  std::vector<Time> times{ready};
  if (duplicate < faults.duplicate) {
    ++counts_.duplicated;
    times.push_back(ready);
  }
  return times;
}

}  // namespace troupe::testing
