#include "tests/support/pty_program.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

namespace troupe::testing {

namespace {

/// A screen without an end below: enough for carriage returns, newlines, "home" and "clear".
class Screen {
 public:
  explicit Screen(std::size_t columns) : columns_(columns) {}
  void write(const std::string& bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] == '\x1b' && i + 1 < bytes.size() && bytes[i + 1] == '[') {
        i += 2;
        while (i < bytes.size() && !(bytes[i] >= '@' && bytes[i] <= '~')) ++i;
        if (i < bytes.size()) control(bytes[i]);
      } else if (bytes[i] == '\r') {
        column_ = 0;
      } else if (bytes[i] == '\n') {
        ++row_;
      } else {
        put(bytes[i]);
      }
    }
  }
  std::vector<std::string> lines() const {
    std::vector<std::string> all = lines_;
    for (std::string& line : all) line.erase(line.find_last_not_of(' ') + 1);
    return all;
  }

 private:
  void control(char command) {
    if (command == 'H') row_ = column_ = 0;
    if (command == 'J') lines_.clear();
  }
  void put(char c) {
    if (column_ == columns_) {
      ++row_;
      column_ = 0;
    }
    if (lines_.size() <= row_) lines_.resize(row_ + 1);
    std::string& line = lines_[row_];
    if (line.size() <= column_) line.resize(column_ + 1, ' ');
    line[column_++] = c;
  }

  const std::size_t columns_;
  std::vector<std::string> lines_;
  std::size_t row_ = 0, column_ = 0;
};

}  // namespace

PtyProgram::PtyProgram(const std::vector<std::string>& words, const std::string& cwd,
                       std::map<std::string, std::string> env, std::chrono::seconds deadline, int columns, int rows)
    : until_(std::chrono::steady_clock::now() + deadline), columns_(columns) {
  std::vector<std::string> all{std::getenv("TROUPE_BINARY")};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  for (std::string& word : all) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const winsize size{.ws_row = static_cast<unsigned short>(rows),
                     .ws_col = static_cast<unsigned short>(columns),
                     .ws_xpixel = 0,
                     .ws_ypixel = 0};
  pid_ = ::forkpty(&terminal_, nullptr, nullptr, &size);
  if (pid_ != 0) return;
  for (const auto& [name, value] : env) ::setenv(name.c_str(), value.c_str(), 1);
  if (::chdir(cwd.c_str()) == 0) ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

PtyProgram::~PtyProgram() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ::close(terminal_);
}

bool PtyProgram::read_more() {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until_ - std::chrono::steady_clock::now()).count();
  pollfd fd{.fd = terminal_, .events = POLLIN, .revents = 0};
  if (left <= 0 || ::poll(&fd, 1, static_cast<int>(left)) <= 0) return false;
  std::array<char, 4096> buffer;
  const ssize_t n = ::read(terminal_, buffer.data(), buffer.size());
  if (n <= 0) return n < 0 && errno == EINTR;  // EIO: the other side has closed
  bytes_.append(buffer.data(), static_cast<std::size_t>(n));
  return true;
}

bool PtyProgram::wait_for_text(const std::string& text) {
  while (bytes_.find(text) == std::string::npos) {
    if (!read_more()) return false;
  }
  return true;
}

void PtyProgram::type(const std::string& keys) const {
  if (::write(terminal_, keys.data(), keys.size()) != static_cast<ssize_t>(keys.size())) std::abort();
}

int PtyProgram::wait() {
  while (read_more()) continue;
  if (std::chrono::steady_clock::now() >= until_) return -1;
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::vector<std::string> PtyProgram::screen() const {
  Screen screen(static_cast<std::size_t>(columns_));
  screen.write(bytes_);
  return screen.lines();
}

}  // namespace troupe::testing
