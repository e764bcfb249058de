#include "base/metrics.h"

#include "base/check.h"

namespace troupe::base {

MetricRegistry::Entry& MetricRegistry::entry(std::string_view name, MetricKind kind) {
  auto it = entries_.find(name);
  if (it == entries_.end()) it = entries_.emplace(std::string(name), Entry{kind, 0.0}).first;
  TROUPE_CHECK(it->second.kind == kind, "one metric name is either set or added to: " + std::string(name));
  return it->second;
}

void MetricRegistry::set(std::string_view name, double value) {
  std::lock_guard lock(mutex_);
  entry(name, MetricKind::gauge).value = value;
}

void MetricRegistry::add(std::string_view name, double by) {
  TROUPE_CHECK(by >= 0, "counters only grow");
  std::lock_guard lock(mutex_);
  entry(name, MetricKind::counter).value += by;
}

double MetricRegistry::value(std::string_view name) const {
  std::lock_guard lock(mutex_);
  const auto it = entries_.find(name);
  return it == entries_.end() ? 0.0 : it->second.value;
}

std::map<std::string, double> MetricRegistry::snapshot() const {
  std::lock_guard lock(mutex_);
  std::map<std::string, double> values;
  for (const auto& [name, e] : entries_) values[name] = e.value;
  return values;
}

std::vector<MetricValue> MetricRegistry::list() const {
  std::lock_guard lock(mutex_);
  std::vector<MetricValue> values;
  for (const auto& [name, e] : entries_) values.push_back({name, e.kind, e.value});
  return values;
}

}  // namespace troupe::base
