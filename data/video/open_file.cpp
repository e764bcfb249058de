#include "data/video/open_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/fault.h"
#include "base/file_io.h"

namespace troupe::data {

namespace {

using Clock = std::chrono::steady_clock;

/// The file as the kernel knows it, without asking a remote file system: a call that never waits.
bool still_the_same(const OpenFile& file) {
  struct statx now = {};
  if (::statx(file.fd.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_NLINK | STATX_SIZE | STATX_MTIME, &now) != 0)
    return true;  // a file system without statx: what is open stays what it is
  return now.stx_nlink > 0 && static_cast<std::int64_t>(now.stx_size) == file.identity.size &&
         now.stx_mtime.tv_sec * 1'000'000'000LL + now.stx_mtime.tv_nsec == file.identity.modified_ns;
}

/// Opens the file and learns its identity; runs on the reading thread.
Result<std::shared_ptr<OpenFile>> open_on_thread(const std::string& path) {
  auto file = std::make_shared<OpenFile>();
  file->path = path;
  file->stem = stem_of(path);
  TROUPE_TRY(fault_point("read", file->stem));
  TROUPE_ASSIGN(file->identity, identify_video_file(path));
  TROUPE_ASSIGN(file->fd, open_file(path, O_RDONLY));
  struct stat facts = {};
  if (::fstat(file->fd.get(), &facts) != 0 || facts.st_ino != file->identity.inode ||
      facts.st_dev != file->identity.device) {
    return Error{Errc::data_loss, fmt::format("{}: the file was replaced while it was opened", path)};
  }
  return file;
}

}  // namespace

std::string stem_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  return name.substr(0, name.find_last_of('.'));
}

OpenFiles::OpenFiles(std::int64_t most, FindPacketTable find_table)
    : most_(static_cast<std::size_t>(std::max<std::int64_t>(1, most))), find_table_(std::move(find_table)) {}

Result<std::shared_ptr<const OpenFile>> OpenFiles::get(const std::string& path, ReadThread& thread,
                                                       Clock::time_point deadline) {
  if (const auto known = by_path_.find(path); known != by_path_.end()) {
    if (still_the_same(**known->second)) {
      order_.splice(order_.begin(), order_, known->second);
      return order_.front();
    }
    drop(path);
  }
  TROUPE_ASSIGN(auto file, open(path, thread, deadline));
  order_.push_front(file);
  by_path_[path] = order_.begin();
  while (order_.size() > most_) drop(std::string(order_.back()->path));
  return file;
}

Result<std::shared_ptr<const OpenFile>> OpenFiles::open(const std::string& path, ReadThread& thread,
                                                        Clock::time_point deadline) {
  using Opened = std::shared_ptr<OpenFile>;
  const auto attempt = [&] {
    return thread.call<Opened>([path] { return open_on_thread(path); }, deadline, path, "opening it");
  };
  auto opened = attempt();
  while (!opened && opened.error().code() == Errc::resource_exhausted && !order_.empty()) {
    drop(std::string(order_.back()->path));  // the process is out of file descriptors: one of ours makes room
    opened = attempt();
  }
  TROUPE_ASSIGN(const Opened file, std::move(opened));
  ++counters_.files_opened;
  const bool distrusted = distrusted_.contains(path);
  if (find_table_ && !distrusted) file->table = find_table_(path, file->identity);
  if (file->table) {
    ++counters_.tables_found;
  } else {
    using Table = std::shared_ptr<const PacketTable>;
    const auto read = [=] { return read_packet_table(path, false, deadline, distrusted); };
    TROUPE_ASSIGN(file->table, thread.call<Table>(read, deadline, path, "reading its index"));
    ++counters_.tables_read;
  }
  return std::shared_ptr<const OpenFile>(file);
}

void OpenFiles::drop(const std::string& path) {
  const auto known = by_path_.find(path);
  if (known == by_path_.end()) return;
  order_.erase(known->second);
  by_path_.erase(known);
}

void OpenFiles::forget(const std::string& path) {
  drop(path);
  distrusted_.insert(path);
}

}  // namespace troupe::data
