#pragma once

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

namespace troupe::bench {

/// A folder of mode 0700 for ipc endpoints and logs, gone with its owner.
class PrivateFolder {
 public:
  PrivateFolder() {
    std::string name = "/tmp/troupe-bench-XXXXXX";  // short: an ipc path has at most 107 bytes
    if (::mkdtemp(name.data()) == nullptr) {
      throw std::system_error(errno, std::generic_category(), "cannot make " + name);
    }
    path_ = name;
  }
  ~PrivateFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  std::string endpoint(const std::string& name) const { return "ipc://" + file(name); }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace troupe::bench
