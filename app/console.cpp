#include "app/console.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/blocked_signals.h"
#include "base/log.h"

namespace troupe::app {

namespace {

constexpr std::chrono::milliseconds kLastWait{2000}, kRepaintEvery{100}, kWorkLine{10'000};

const char* prefix_of(Severity severity) {
  return severity == Severity::warn ? "warning: " : severity == Severity::error ? "error: " : "";
}

}  // namespace

Result<std::unique_ptr<Console>> Console::open(const std::string& kept) {
  TROUPE_ASSIGN(AppendFile file, AppendFile::open(kept, AppendFile::Open::resume));
  return std::unique_ptr<Console>(new Console(std::move(file)));
}

Console::Console(AppendFile kept)
    : kept_(std::move(kept)), out_(STDOUT_FILENO, kept_.path()), err_(STDERR_FILENO, kept_.path()) {
  const BlockedSignals blocked;  // SIGPIPE of a closed pipe among them
  thread_ = std::thread([this] { run(); });
}

Console::~Console() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.raise();
  thread_.join();
}

void Console::line(Severity severity, const std::string& text) {
  const std::string all = prefix_of(severity) + text + "\n";
  push({.severity = severity, .text = all, .kept = all});
}

void Console::progress(const std::string& text) {
  push({.text = text + "\n", .kept = text + "\n", .is_progress = true});
}

void Console::styled(const std::string& text, const std::string& plain) {
  push({.text = text + "\n", .kept = plain + "\n"});
}

void Console::keep(const std::string& text) { push({.text = {}, .kept = text + "\n"}); }

void Console::work(const CountedWork& work) {
  bool is_due = false;
  {
    std::lock_guard lock(mutex_);
    Live live = [work](const TextStyle& style) { return counted_text(work, style); };
    const bool is_done = work.done >= work.of;
    newest_ = is_done ? nullptr : live;
    if (is_done) items_.push_back({.text = {}, .kept = {}, .live = std::move(live)});
    const auto now = std::chrono::steady_clock::now();
    is_due = now - said_ >= kWorkLine;
    if (is_due) said_ = now;
  }
  if (is_due) return progress(counted_text(work, {}));
  wake_.raise();
}

void Console::push(Item item) {
  {
    std::lock_guard lock(mutex_);
    items_.push_back(std::move(item));
  }
  wake_.raise();
}

void Console::live(const LiveLine& line) {
  {
    std::lock_guard lock(mutex_);
    newest_ = [line](const TextStyle& style) { return live_text(line, style); };
  }
  wake_.raise();
}

std::deque<Console::Item> Console::take(Live& live, bool& ending) {
  std::lock_guard lock(mutex_);
  if (newest_) live = std::exchange(newest_, nullptr);
  ending = ending_;
  return std::exchange(items_, {});
}

void Console::write_kept(const std::string& text) {
  if (!keeps_) return;
  auto written = kept_.append(text);
  if (written) written = kept_.flush();
  if (written) return;
  keeps_ = false;  // said once: the job goes on without the copy
  log::error("what the run says is no longer kept: {}", written.error().message());
}

void Console::show(const Item& item) {
  if (item.live) return out_.set_live(item.live(style()));
  write_kept(item.kept);
  if (item.text.empty() || (item.is_progress && out_.has_live_line())) return;
  if (item.severity != Severity::error) return out_.print(item.text);
  // On one terminal both would paint: the live line steps aside.
  out_.set_live("");
  err_.print(item.text);
}

void Console::run() {
  using Clock = std::chrono::steady_clock;
  Live live;
  std::optional<Clock::time_point> last;
  auto repaint = Clock::now();
  while (true) {
    wake_.clear();
    bool ending = false;
    for (const Item& item : take(live, ending)) show(item);
    const auto now = Clock::now();
    if (live && now >= repaint) {
      out_.set_live(live(style()));
      live = nullptr;
      repaint = now + kRepaintEvery;
    }
    if (ending && !last) {
      out_.set_live("");
      last = now + kLastWait;
    }
    out_.flush();
    err_.flush();
    if (ending && ((!out_.is_waiting() && !err_.is_waiting()) || now >= *last)) return;
    std::array<pollfd, 3> fds{{{.fd = wake_.get(), .events = POLLIN, .revents = 0},
                               {.fd = out_.is_waiting() ? out_.fd() : -1, .events = POLLOUT, .revents = 0},
                               {.fd = err_.is_waiting() ? err_.fd() : -1, .events = POLLOUT, .revents = 0}}};
    const auto until = last ? *last : repaint;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now).count();
    ::poll(fds.data(), fds.size(), last || live ? static_cast<int>(std::max<std::int64_t>(0, left)) : -1);
  }
}

}  // namespace troupe::app
