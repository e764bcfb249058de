#include "app/terminal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "workers/report/text_report.h"

namespace troupe::app {

namespace {

constexpr std::size_t kMostWaiting = 256 << 10;
constexpr std::size_t kTyped = 2;  // columns of the "^C" that a terminal shows behind a live line

/// A descriptor of our own for what `fd` is open on, whose writes do not block. A terminal or pipe is opened anew,
/// since O_NONBLOCK on `fd` itself would be seen by everybody who shares it; writes to files do not block for long.
int open_again(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return -1;
  if (S_ISCHR(info.st_mode) || S_ISFIFO(info.st_mode)) {
    const int own = ::open(fmt::format("/proc/self/fd/{}", fd).c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (own >= 0) return own;
  }
  return ::fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

}  // namespace

Terminal::Terminal(int fd, std::string kept_in)
    : fd_(open_again(fd)), kept_in_(std::move(kept_in)), repaints_(text_style_of(fd).is_terminal) {}

std::string Terminal::erased_live() const {
  return live_.empty() ? std::string() : "\r" + std::string(live_.size() + kTyped, ' ') + "\r";
}

void Terminal::append(const std::string& text) {
  if (!fd_.is_open()) return;
  if (waiting_.size() + text.size() > kMostWaiting) {
    lost_lines_ += static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    return;
  }
  waiting_ += text;
}

void Terminal::print(const std::string& text) {
  append(erased_live() + text + live_);
  flush();
}

void Terminal::set_live(const std::string& line) {
  if (!repaints_) return;
  // A terminal that does not keep up is not sent every state of the line.
  if (is_waiting()) return;
  append(erased_live() + "\r" + line);
  live_ = line;
  flush();
}

void Terminal::flush() {
  while (!waiting_.empty() && fd_.is_open()) {
    const ssize_t written = ::write(fd_.get(), waiting_.data(), waiting_.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (written < 0) {
      // Closed by its reader: nobody is left to tell.
      fd_.reset();
      waiting_.clear();
      return;
    }
    waiting_.erase(0, static_cast<std::size_t>(written));
  }
  if (lost_lines_ == 0 || !fd_.is_open()) return;
  const std::size_t lost = std::exchange(lost_lines_, 0);
  append(fmt::format("{}note: {} lines were not shown here, as nobody read them; they are in {}\n{}", erased_live(),
                     lost, kept_in_, live_));
}

}  // namespace troupe::app
