#include "tests/device/standin/nccl_board.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/check.h"

namespace troupe::device::standin {
namespace {

[[noreturn]] void throw_errno(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

base::FileDescriptor open_file(const std::string& path) {
  base::FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (file.get() < 0) throw_errno(path);
  return file;
}

}  // namespace

NcclBoard::NcclBoard(std::string path, int world, int rank) : path_(std::move(path)), world_(world), rank_(rank) {
  TROUPE_CHECK(world <= kRanks && rank >= 0 && rank < world, "the stand-in of NCCL has few ranks");
  board_ = open_file(path_);
  if (::ftruncate(board_.get(), sizeof(Shared)) != 0) throw_errno(path_);
  void* mapped = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, board_.get(), 0);
  if (mapped == MAP_FAILED) throw_errno(path_);
  shared_ = static_cast<Shared*>(mapped);  // zeros of a new file
  for (int r = 0; r < world; ++r) lives_.push_back(open_file(name_of("life", r, r)));
  for (int from = 0; from < world; ++from) {
    for (int to = 0; to < world; ++to) messages_.push_back(open_file(name_of("message", from, to)));
  }
  if (::flock(lives_[static_cast<std::size_t>(rank)].get(), LOCK_EX | LOCK_NB) != 0) throw_errno(path_);
  shared_->arrived.fetch_add(1);
}

NcclBoard::~NcclBoard() { ::munmap(shared_, sizeof(Shared)); }

std::string NcclBoard::name_of(const char* what, int from, int to) const {
  return fmt::format("{}.{}.{}.{}", path_, what, from, to);
}

bool NcclBoard::is_complete() {
  if (shared_->arrived.load() < static_cast<std::uint32_t>(world_)) return false;
  if (std::exchange(is_named_, false)) {
    // what is killed later leaves nothing behind; another rank may have been first
    ::unlink(path_.c_str());
    for (int from = 0; from < world_; ++from) {
      ::unlink(name_of("life", from, from).c_str());
      for (int to = 0; to < world_; ++to) ::unlink(name_of("message", from, to).c_str());
    }
  }
  return true;
}

bool NcclBoard::is_gone(int rank) const {
  if (rank == rank_) return false;
  const auto& life = lives_[static_cast<std::size_t>(rank)];
  if (::flock(life.get(), LOCK_SH | LOCK_NB) != 0) return false;
  ::flock(life.get(), LOCK_UN);
  return true;
}

bool NcclBoard::send(int peer, const Envelope& envelope, std::span<const std::byte> bytes) {
  auto& box = shared_->mail[rank_][peer];
  const auto posted = box.posted.load();
  if (box.taken.load() != posted) return false;
  const auto& file = messages_[place(rank_, peer)];
  if (::pwrite(file.get(), bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) throw_errno(path_);
  box.envelope = envelope;
  box.posted.store(posted + 1);
  return true;
}

std::optional<Envelope> NcclBoard::peek(int peer) const {
  const auto& box = shared_->mail[peer][rank_];
  if (box.posted.load() == box.taken.load()) return std::nullopt;
  return box.envelope;
}

void NcclBoard::receive(int peer, std::span<std::byte> to) {
  const auto& file = messages_[place(peer, rank_)];
  if (::pread(file.get(), to.data(), to.size(), 0) != static_cast<ssize_t>(to.size())) throw_errno(path_);
  shared_->mail[peer][rank_].taken.fetch_add(1);
}

}  // namespace troupe::device::standin
