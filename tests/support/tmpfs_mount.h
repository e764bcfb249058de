#pragma once

#include <sys/mount.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <utility>

#include "tests/support/visible.h"

namespace troupe::testing {

/// A small file system of its own at `path`, which is made; it goes away with its owner, and what it holds too.
class TmpfsMount {
 public:
  /// `size` as mount(8) takes it: "1600k".
  TmpfsMount(std::string path, const std::string& size) : path_(std::move(path)) {
    std::filesystem::create_directories(path_);
    if (::mount("tmpfs", path_.c_str(), "tmpfs", 0, ("size=" + size).c_str()) != 0) error_ = errno;
  }
  ~TmpfsMount() {
    if (error_ == 0 && !kept_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  TmpfsMount(const TmpfsMount&) = delete;
  TmpfsMount& operator=(const TmpfsMount&) = delete;

  /// errno of the mount, which wants CAP_SYS_ADMIN; 0: it is there.
  int error() const { return error_; }
  /// It stays, to be looked at and unmounted by hand.
  void keep() { kept_ = true; }

 private:
  const std::string path_;
  int error_ = 0;
  bool kept_ = false;
};

}  // namespace troupe::testing
