#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "configs/loader.h"
#include "tests/support/scratch_folder.h"

namespace troupe::testing {

/// A complete job in one line; tests lay their keys over it.
inline const std::string kTiny = "extends: presets/dreamzero_tiny.yaml\n";

inline LoadOutcome load(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  return load_job_text("my.yaml", yaml, overrides);
}

/// Whether a text has a part; what fails shows the text.
inline ::testing::AssertionResult contains(const std::string& text, const std::string& part) {
  return ::testing::AssertionResult(text.find(part) != std::string::npos) << text;
}

/// The job, or a failed test that shows the errors.
inline JobConfig job_of(const LoadOutcome& outcome) {
  std::string all;
  for (const std::string& error : outcome.errors) all += error + "\n";
  EXPECT_TRUE(outcome.config.has_value()) << all;
  EXPECT_TRUE(outcome.errors.empty()) << all;
  return outcome.config ? outcome.config->job : JobConfig{};
}

/// All errors in one text.
inline std::string errors_of(const LoadOutcome& outcome) {
  EXPECT_FALSE(outcome.config.has_value()) << "the load succeeded";
  std::string all;
  for (const std::string& error : outcome.errors) all += error + "\n";
  return all;
}

/// Fails unless the load reports one error, which has this part.
inline void expect_only_error(const LoadOutcome& outcome, const std::string& part) {
  const std::string errors = errors_of(outcome);
  ASSERT_EQ(outcome.errors.size(), 1u) << errors;
  EXPECT_TRUE(contains(errors, part));
}

/// Overrides by which a job breaks one rule of the validation (docs/config.md), and part of the error.
struct Broken {
  const char* name;
  std::vector<std::string> overrides;
  const char* error;
  friend std::ostream& operator<<(std::ostream& out, const Broken& broken) { return out << broken.name; }
};
inline std::string broken_name(const ::testing::TestParamInfo<Broken>& info) { return info.param.name; }

/// Writes a file of a folder, with the folders on its way; its path.
inline std::string write(const ScratchFolder& folder, const std::string& name, const std::string& text) {
  const std::string path = folder / name;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
  return path;
}

/// An environment variable for the length of a scope.
class ScopedEnv {
 public:
  ScopedEnv(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~ScopedEnv() { ::unsetenv(name_); }
  ScopedEnv(const ScopedEnv&) = delete;
  ScopedEnv& operator=(const ScopedEnv&) = delete;

 private:
  const char* name_;
};

}  // namespace troupe::testing
