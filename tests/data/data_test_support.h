#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "configs/data_config.h"
#include "data/statistics/statistics.h"
#include "tests/data/shared_data.h"
#include "tests/support/golden_folder.h"

namespace troupe::data {

using OrderedJson = nlohmann::ordered_json;

/// Golden cases of the data side of one kind, which is the file's name, from every golden folder. The JSON of a case
/// keeps no order: parse_golden() does.
inline std::vector<testing::GoldenCase> golden_data_cases(const std::string& kind) {
  auto cases = testing::golden_cases("data");
  std::erase_if(cases, [&](const testing::GoldenCase& c) { return c.file.stem() != kind; });
  return cases;
}

/// The case's file with its members in their order. Throws nlohmann::json::parse_error, which fails the test.
inline OrderedJson parse_golden(const testing::GoldenCase& c) {
  std::ifstream in(c.file);
  return OrderedJson::parse(in);
}

/// The parsed files of golden_data_cases(), of which there must be one.
inline std::vector<OrderedJson> golden_files(const std::string& kind) {
  std::vector<OrderedJson> found;
  for (const testing::GoldenCase& c : golden_data_cases(kind)) found.push_back(parse_golden(c));
  EXPECT_FALSE(found.empty()) << "no golden kind " << kind << " in " << testing::golden_roots_text();
  return found;
}

/// A top-level part of a golden file; null, which has no items, where the file lacks it.
inline const OrderedJson& part_of(const OrderedJson& file, const char* name) {
  static const OrderedJson none;
  const auto it = file.find(name);
  return it == file.end() ? none : *it;
}

/// Whether a golden file has any of these parts: one that has none tests nothing, which is a failure.
inline bool has_any_part(const OrderedJson& file, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* name) { return !part_of(file, name).empty(); });
}

/// [[first, step, count], ...] written out.
inline std::vector<std::int64_t> expand_runs(const OrderedJson& runs) {
  std::vector<std::int64_t> out;
  for (const OrderedJson& run : runs) {
    const std::int64_t first = run[0], step = run[1], count = run[2];
    for (std::int64_t i = 0; i < count; ++i) out.push_back(first + i * step);
  }
  return out;
}

inline FeatureStatistics statistics_of(const OrderedJson& j) {
  const auto values = [&](const char* name) { return j.at(name).get<std::vector<double>>(); };
  return {values("min"), values("max"), values("mean"), values("std"), values("q01"), values("q99")};
}

/// Row-major rows of a JSON matrix.
template <class T>
std::vector<T> flat(const OrderedJson& rows) {
  std::vector<T> out;
  for (const OrderedJson& row : rows) {
    for (const OrderedJson& v : row) out.push_back(v.get<T>());
  }
  return out;
}

/// Largest |got - want| / max(1, |want|); infinite when the sizes differ.
template <class A, class B>
double worst_error(const std::vector<A>& got, const std::vector<B>& want) {
  if (got.size() != want.size()) return INFINITY;
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto g = static_cast<double>(got[i]), w = static_cast<double>(want[i]);
    const double error = std::abs(g - w) / std::max(1.0, std::abs(w));
    worst = error <= worst ? worst : error;  // a NaN stays visible
  }
  return worst;
}

/// XXH64 of the packed bytes of values, as the golden files write it.
template <class T>
std::string xxh64_of(const std::vector<T>& values) {
  return to_hex(xxh64(std::as_bytes(std::span(values))));
}

}  // namespace troupe::data
