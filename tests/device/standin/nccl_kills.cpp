#include "tests/device/standin/nccl_kills.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <sstream>
#include <system_error>

#include "base/file_descriptor.h"

namespace troupe::device::standin {

struct NcclKills::Counts {
  std::atomic<std::uint64_t> operations, kills;
};

NcclKills::NcclKills(const std::string& words) {
  std::istringstream in(words);
  std::string path;
  if (!(in >> path >> every_ >> most_) || every_ == 0) return;
  const base::FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file.is_open() || ::ftruncate(file.get(), sizeof(Counts)) != 0)
    throw std::system_error(errno, std::generic_category(), path);
  void* mapped = ::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (mapped == MAP_FAILED) throw std::system_error(errno, std::generic_category(), path);
  counts_ = static_cast<Counts*>(mapped);  // zeros of a new file; stays until the process ends
}

void NcclKills::count_operation() {
  if (counts_ == nullptr || (counts_->operations.fetch_add(1) + 1) % every_ != 0) return;
  if (counts_->kills.fetch_add(1) < most_) ::raise(SIGKILL);
}

std::uint64_t NcclKills::kills() const { return counts_ == nullptr ? 0 : counts_->kills.load(); }

}  // namespace troupe::device::standin
