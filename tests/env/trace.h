#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tests/support/golden_folder.h"
#include "tests/support/safetensors_file.h"

namespace troupe::testing {

/// One tensor of a recorded trace as rows of doubles: row i belongs to step i.
struct TraceTable {
  std::int64_t steps = 0, width = 1;
  bool is_double = false;  ///< as recorded
  std::vector<double> values;

  std::span<const double> row(std::int64_t step) const {
    return std::span(values).subspan(static_cast<std::size_t>(step * width), static_cast<std::size_t>(width));
  }
  double operator[](std::int64_t step) const { return values[static_cast<std::size_t>(step * width)]; }
};

/// A golden trace's tensors by name. Those that a case leaves out are empty; the ones that a test cannot do without
/// it asks for with require().
class Trace {
 public:
  explicit Trace(const GoldenCase& c) {
    for (const auto& [name, tensor] : load_safetensors(c.tensors())) {
      TraceTable table;
      table.steps = tensor.dim() == 0 ? 1 : tensor.size(0);
      table.width = table.steps == 0 ? 1 : tensor.numel() / table.steps;
      table.is_double = tensor.scalar_type() == at::kDouble;
      const at::Tensor values = tensor.to(at::kDouble).contiguous();
      table.values.assign(values.data_ptr<double>(), values.data_ptr<double>() + values.numel());
      tables_[name] = std::move(table);
    }
  }
  bool has(const std::string& name) const { return tables_.count(name) > 0; }
  const TraceTable& at(const std::string& name) const { return tables_.at(name); }
  const std::map<std::string, TraceTable>& tables() const { return tables_; }
  std::int64_t steps() const { return has("action") ? at("action").steps : 0; }
  void require(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      ASSERT_TRUE(has(name)) << "the trace has no tensor '" << name << "'";
      EXPECT_EQ(at(name).steps, steps()) << name;
    }
  }
  /// A new episode starts at this step: always at the first, and where reset_before says so.
  bool starts_episode(std::int64_t step) const {
    return step == 0 || (has("reset_before") && at("reset_before")[step] != 0);
  }
  /// A number of a step against the recorded one; says nothing where the case leaves the tensor out.
  void expect_value(const char* name, std::int64_t step, double found, double tolerance) const {
    if (has(name)) {
      ASSERT_NEAR(found, at(name)[step], tolerance) << name;
    }
  }
  std::vector<float> action(std::int64_t step) const {
    const auto row = at("action").row(step);
    return {row.begin(), row.end()};
  }

 private:
  std::map<std::string, TraceTable> tables_;
};

inline void expect_near(std::span<const double> found, std::span<const double> wanted, double tolerance,
                        const std::string& what) {
  ASSERT_EQ(found.size(), wanted.size()) << what;
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], wanted[i], tolerance) << what << "[" << i << "]";
  }
}

}  // namespace troupe::testing
