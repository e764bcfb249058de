#pragma once

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>

#include "tests/support/visible.h"

namespace troupe::testing {

/// An empty folder of mode 0700 that goes away with its owner. Tests and benchmarks have no other temporary folders.
class ScratchFolder {
 public:
  /// In `parent`: "/tmp" for sockets, whose paths have at most 107 bytes.
  explicit ScratchFolder(const std::filesystem::path& parent = std::filesystem::temp_directory_path()) {
    std::string name = (parent / "troupe-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error(name + " cannot be made");
    path_ = std::move(name);
  }
  ~ScratchFolder() {
    std::error_code ignored;  // a temporary folder that stays is not a failure of the test
    if (!kept_) std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  /// The address of a socket in it.
  std::string endpoint(const std::string& name) const { return "ipc://" + *this / name; }
  /// It stays, to be looked at.
  void keep() { kept_ = true; }

 private:
  std::string path_;
  bool kept_ = false;
};

}  // namespace troupe::testing
