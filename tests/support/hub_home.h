#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>

#include "tests/support/scratch_folder.h"

namespace troupe::testing {

/// A home folder of its own, with no other variable that names a cache of Hugging Face; all come back with the end.
class HubHome {
 public:
  HubHome() {
    for (const char* name :
         {"HF_LEROBOT_HOME", "HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME", "HOME"}) {
      const char* value = std::getenv(name);
      before_[name] = value == nullptr ? std::nullopt : std::optional<std::string>(value);
      ::unsetenv(name);
    }
    ::setenv("HOME", (folder_ / "home").c_str(), 1);
  }
  ~HubHome() {
    for (const auto& [name, value] : before_)
      value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
  }
  HubHome(const HubHome&) = delete;
  HubHome& operator=(const HubHome&) = delete;

  /// A path below the folder that holds `home`.
  std::string operator/(const std::string& name) const { return folder_ / name; }
  /// Writes a file there, with its folders, and returns its path.
  std::string put(const std::string& name, const std::string& text = "{}") const {
    const std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path.string();
  }

 private:
  ScratchFolder folder_;
  std::map<std::string, std::optional<std::string>> before_;
};

}  // namespace troupe::testing
