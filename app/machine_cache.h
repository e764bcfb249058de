#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace troupe::app {

/// What was measured on this machine, as a file of the user's cache: CACHE/troupe/NAME (base/cache_home.h), a JSON
/// object whose member "machine" is the processor and the LibTorch that it was measured with. One thread at a time.
class MachineCache {
 public:
  /// Reads the file. Empty where there is none, or one of another machine.
  explicit MachineCache(const std::string& name);

  /// Whatever its user keeps, beside "machine".
  nlohmann::ordered_json& values() { return values_; }
  /// Writes the file. Where it cannot be written a line in the log says so.
  void keep() const;

 private:
  /// Empty: there is no cache.
  std::string folder_;
  std::string path_;
  nlohmann::ordered_json values_;
};

}  // namespace troupe::app
