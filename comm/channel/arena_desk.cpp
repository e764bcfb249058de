#include "comm/channel/arena_desk.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "base/blocked_signals.h"
#include "base/event_fd.h"
#include "base/ids.h"
#include "base/log.h"

namespace troupe::comm {
namespace {

constexpr const char* kSocketName = "/arenas";
constexpr std::size_t kMaxMessage = 64;
/// Learner ranks and their snapshots: a node has some tens of owners, each with one line.
constexpr std::size_t kMaxLines = 1024;
constexpr std::chrono::seconds kDeadline{5};
/// Requests; a ticket's secret follows "get ". Answers: "ok", with the secret of a deposit, or "none".
constexpr std::string_view kPut = "put", kGet = "get ", kOk = "ok ", kNone = "none";
constexpr std::size_t kSecretDigits = 32;

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return Error{Errc::unavailable,
                 fmt::format("{}: a socket's path has at most {} bytes; set XDG_RUNTIME_DIR to a shorter folder", path,
                             sizeof address.sun_path - 1)};
  }
  std::copy(path.begin(), path.end(), address.sun_path);
  return address;
}

/// A message and the descriptor that came with it, if one did.
struct Received {
  std::string text;
  FileDescriptor fd;
};

/// Sends `text`, with a descriptor unless it is -1. 0, or errno.
int send_message(int socket, std::string_view text, int fd, int flags) {
  iovec part{const_cast<char*>(text.data()), text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  while (::sendmsg(socket, &message, MSG_NOSIGNAL | flags) < 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

/// Nothing: the peer has gone, or errno says what failed.
std::optional<Received> receive_message(int socket, int flags) {
  std::array<char, kMaxMessage> text{};
  iovec part{text.data(), text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got = 0;
  do {
    got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | flags);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) return std::nullopt;
  Received received{.text = std::string(text.data(), static_cast<std::size_t>(got)), .fd = {}};
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
      header->cmsg_len == CMSG_LEN(sizeof(int))) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    received.fd.reset(fd);
  }
  return received;
}

bool is_own_user(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
}

class Desk final : public ArenaDesk {
 public:
  Desk(FileDescriptor listener, std::string path) : listener_(std::move(listener)), path_(std::move(path)) {
    const BlockedSignals blocked;
    thread_ = std::thread([this] { run(); });
  }
  ~Desk() override {
    is_over_ = true;
    wake_.raise();
    thread_.join();
    ::unlink(path_.c_str());
  }

 private:
  /// A connection, and what its peer has left.
  struct Line {
    FileDescriptor socket;
    std::string secret;
    FileDescriptor deposit;
  };

  void run() {
    while (!is_over_) {
      std::vector<pollfd> fds{{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
      for (const Line& line : lines_) fds.push_back({line.socket.get(), POLLIN, 0});
      if (::poll(fds.data(), fds.size(), -1) < 0) continue;
      auto line = lines_.begin();
      for (std::size_t i = 2; i < fds.size(); ++i) {
        const auto next = std::next(line);
        if (fds[i].revents != 0 && !answer(*line)) lines_.erase(line);
        line = next;
      }
      if (fds[1].revents != 0) accept_line();
    }
  }

  void accept_line() {
    FileDescriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket.is_open()) return;
    if (!is_own_user(socket.get()) || lines_.size() >= kMaxLines) {
      log::warn("{}: a connection was refused ({})", path_,
                lines_.size() >= kMaxLines ? "too many are open" : "it is another user's");
      return;
    }
    lines_.push_back({.socket = std::move(socket), .secret = {}, .deposit = {}});
  }

  /// False: the line is over. Nothing here waits for a peer.
  bool answer(Line& line) {
    auto request = receive_message(line.socket.get(), MSG_DONTWAIT);
    if (!request) return false;
    if (request->text == kPut && request->fd.is_open() && !line.deposit.is_open()) {
      line.deposit = std::move(request->fd);
      line.secret = fmt::format("{:016x}{:016x}", new_incarnation(), new_incarnation());
      return send_message(line.socket.get(), std::string(kOk) + line.secret, -1, MSG_DONTWAIT) == 0;
    }
    if (!request->text.starts_with(kGet)) return false;
    const std::string secret = request->text.substr(kGet.size());
    const auto found = std::find_if(lines_.begin(), lines_.end(), [&](const Line& other) {
      return other.deposit.is_open() && other.secret == secret;
    });
    if (found == lines_.end()) return send_message(line.socket.get(), kNone, -1, MSG_DONTWAIT) == 0;
    return send_message(line.socket.get(), kOk, found->deposit.get(), MSG_DONTWAIT) == 0;
  }

  const FileDescriptor listener_;
  const std::string path_;
  EventFd wake_;
  std::atomic<bool> is_over_{false};
  std::list<Line> lines_;  ///< of the thread
  std::thread thread_;
};

/// A connection to the desk whose waits have a deadline.
Result<FileDescriptor> call(const std::string& path) {
  TROUPE_ASSIGN(const sockaddr_un address, address_of(path));
  FileDescriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket.is_open())
    return Error{Errc::unavailable, fmt::format("{}: no socket can be made: {}", path, std::strerror(errno))};
  const timeval patience{.tv_sec = kDeadline.count(), .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  while (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno == EINTR) continue;
    const bool is_gone = errno == ENOENT || errno == ECONNREFUSED;
    return Error{is_gone ? Errc::not_found : Errc::unavailable,
                 fmt::format("{}: the node's desk for arenas does not answer: {}", path, std::strerror(errno))};
  }
  return socket;
}

Result<Received> ask(int socket, const std::string& path, std::string_view request, int fd) {
  if (const int why = send_message(socket, request, fd, 0); why != 0)
    return Error{Errc::unavailable, fmt::format("{}: {}", path, std::strerror(why))};
  errno = 0;
  auto answer = receive_message(socket, 0);
  if (answer) return std::move(*answer);
  if (errno == EAGAIN || errno == EWOULDBLOCK) {
    return Error{Errc::deadline_exceeded,
                 fmt::format("{}: the node's desk for arenas did not answer within {} s", path, kDeadline.count())};
  }
  return Error{Errc::unavailable, fmt::format("{}: the node's desk for arenas refused a request", path)};
}

}  // namespace

Result<std::unique_ptr<ArenaDesk>> ArenaDesk::open(const std::string& folder) {
  const std::string path = folder + kSocketName;
  TROUPE_ASSIGN(const sockaddr_un address, address_of(path));
  FileDescriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open())
    return Error{Errc::resource_exhausted, fmt::format("{}: no socket can be made: {}", path, std::strerror(errno))};
  if (auto served = call(path); !served && served.error().code() == Errc::not_found) ::unlink(path.c_str());
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.get(), 64) != 0) {
    return Error{Errc::unavailable, fmt::format("cannot listen on {}: {}", path, std::strerror(errno))};
  }
  return std::unique_ptr<ArenaDesk>(std::make_unique<Desk>(std::move(socket), path));
}

Result<ArenaDesk::Deposit> ArenaDesk::leave(const std::string& folder, int fd) {
  const std::string path = folder + kSocketName;
  TROUPE_ASSIGN(FileDescriptor line, call(path));
  TROUPE_ASSIGN(const Received answer, ask(line.get(), path, kPut, fd));
  if (!answer.text.starts_with(kOk) || answer.text.size() != kOk.size() + kSecretDigits)
    return Error{Errc::unavailable, fmt::format("{}: the node's desk for arenas took nothing", path)};
  return Deposit{.ticket = path + ":" + answer.text.substr(kOk.size()), .line = std::move(line)};
}

Result<FileDescriptor> ArenaDesk::fetch(const std::string& ticket) {
  const std::size_t colon = ticket.rfind(':');
  const std::string secret = colon == std::string::npos ? "" : ticket.substr(colon + 1);
  if (!ticket.starts_with('/') || secret.size() != kSecretDigits ||
      secret.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return Error{Errc::invalid_argument,
                 fmt::format("\"{}\" is not an arena's ticket; wanted <socket>:<32 hexadecimal digits>", ticket)};
  }
  const std::string path = ticket.substr(0, colon);
  TROUPE_ASSIGN(const FileDescriptor line, call(path));
  TROUPE_ASSIGN(Received answer, ask(line.get(), path, std::string(kGet) + secret, -1));
  if (answer.text == kNone || !answer.fd.is_open()) {
    return Error{Errc::not_found, fmt::format("{}: the arena is gone; its owner closed it or has ended", ticket)};
  }
  return std::move(answer.fd);
}

}  // namespace troupe::comm
