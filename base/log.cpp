#include "base/log.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "base/blocked_signals.h"
#include "base/utf8.h"

namespace troupe::base::log {

namespace {

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::debug:
      return spdlog::level::debug;
    case Level::info:
      return spdlog::level::info;
    case Level::warn:
      return spdlog::level::warn;
    case Level::error:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

/// stderr, or whoever paints there.
class StderrSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  void divert(std::function<void(const std::string&)> writer) {
    const std::lock_guard lock(mutex_);
    writer_ = std::move(writer);
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    if (writer_) return writer_(fmt::to_string(line));
    std::fwrite(line.data(), 1, line.size(), stderr);
  }
  void flush_() override { std::fflush(stderr); }

 private:
  std::function<void(const std::string&)> writer_;  // guarded by mutex_ of the base
};

const std::shared_ptr<StderrSink>& stderr_sink() {
  static const auto sink = std::make_shared<StderrSink>();
  return sink;
}

/// `text` as it may stand in one line.
std::string to_line(std::string_view text) {
  constexpr std::size_t kHead = 256;  // time, level and who, and what says that bytes are missing
  constexpr std::size_t kMost = kLineBytes - kHead;
  std::string line;
  for (std::size_t at = 0; at < text.size();) {
    if (line.size() > kMost - 4) {  // what one character takes
      line += fmt::format("... ({} more bytes)", text.size() - at);
      break;
    }
    const auto byte = static_cast<unsigned char>(text[at]);
    const std::size_t length = utf8_length(text.substr(at));
    // U+0080 to U+009F are control characters too, and a terminal may obey them
    const bool is_late_control = length == 2 && byte == 0xC2 && static_cast<unsigned char>(text[at + 1]) < 0xA0;
    if (byte == '\n' || byte == '\t' || byte == '\r') {
      line += byte == '\n' ? "\\n" : byte == '\t' ? "\\t" : "\\r";
    } else if (length == 0 || byte < 0x20 || byte == 0x7F) {
      line += fmt::format("\\x{:02x}", byte);
    } else if (is_late_control) {
      line += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[at + 1]));
    } else {
      line += text.substr(at, length);
    }
    at += std::max<std::size_t>(1, length);
  }
  return line;
}

/// The log's thread and what waits for it. Never destroyed: lines may come during exit.
class Writer {
 public:
  static Writer& instance() {
    static Writer* const writer = new Writer;
    return *writer;
  }

  void configure(std::shared_ptr<spdlog::logger> logger) {
    flush();
    const std::lock_guard lock(mutex_);
    logger_ = std::move(logger);
    allowance_ = kBurst;
  }

  /// False: nothing is configured yet.
  bool push(spdlog::level::level_enum level, std::string_view text) {
    const auto now = std::chrono::system_clock::now();
    const std::lock_guard lock(mutex_);
    if (!logger_) return false;
    if (!logger_->should_log(level)) return true;
    start();
    if (!takes_line()) {
      ++left_out_;
      return true;
    }
    tell_left_out(now);
    waiting_.push_back({level, now, to_line(text)});
    changed_.notify_all();
    return true;
  }

  void flush() {
    constexpr std::chrono::seconds kLongest{5};  // a disk that does not answer must not keep the process
    std::unique_lock lock(mutex_);
    if (!runs_here()) return;
    tell_left_out(std::chrono::system_clock::now());
    changed_.notify_all();
    changed_.wait_for(lock, kLongest, [&] { return waiting_.empty() && !is_writing_; });
  }

 private:
  struct Line {
    spdlog::level::level_enum level;
    std::chrono::system_clock::time_point time;
    std::string text;
  };

  // Requires mutex_, as the next three.
  /// With the first line: a process that confines itself has one thread until then. A child that was forked has none of
  /// its parent's.
  void start() {
    if (runs_here()) return;
    if (owner_ == 0) std::atexit([] { instance().flush(); });
    owner_ = ::getpid();
    is_writing_ = false;
    waiting_.clear();
    const BlockedSignals blocked;
    std::thread([this] { run(); }).detach();
  }
  bool runs_here() const { return owner_ == ::getpid(); }
  bool takes_line() {
    const auto now = std::chrono::steady_clock::now();
    const double gained = kLinesPerSecond * std::chrono::duration<double>(now - last_gain_).count();
    allowance_ = std::min<double>(kBurst, allowance_ + gained);
    last_gain_ = now;
    if (allowance_ < 1 || waiting_.size() >= kMostWaiting) return false;
    allowance_ -= 1;
    return true;
  }
  void tell_left_out(std::chrono::system_clock::time_point now) {
    if (left_out_ == 0) return;
    waiting_.push_back({spdlog::level::warn, now,
                        fmt::format("{} lines were left out: more than {} a second, or the disk is slow", left_out_,
                                    kLinesPerSecond)});
    left_out_ = 0;
  }

  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      // Idle between lines: only a line ends this wait, or the end of the process.
      changed_.wait(lock, [&] { return !waiting_.empty(); });
      std::deque<Line> lines;
      lines.swap(waiting_);
      const auto logger = logger_;
      is_writing_ = true;
      lock.unlock();
      for (const Line& line : lines) logger->log(line.time, spdlog::source_loc{}, line.level, line.text);
      logger->flush();
      lock.lock();
      is_writing_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<spdlog::logger> logger_;
  std::deque<Line> waiting_;
  pid_t owner_ = 0;  // of the thread; 0: there was none yet
  bool is_writing_ = false;
  double allowance_ = kBurst;
  std::chrono::steady_clock::time_point last_gain_ = std::chrono::steady_clock::now();
  std::int64_t left_out_ = 0;
};

}  // namespace

void divert_stderr(std::function<void(const std::string&)> writer) {
  flush();
  stderr_sink()->divert(std::move(writer));
}

void configure(const std::string& who, const std::string& file, Level level) {
  spdlog::sink_ptr sink;
  if (file.empty()) {
    sink = stderr_sink();
  } else {
    sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file);
  }
  auto logger = std::make_shared<spdlog::logger>(who, std::move(sink));
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %n: %v");
  logger->set_level(to_spdlog(level));
  Writer::instance().configure(std::move(logger));
}

void write(Level level, std::string_view text) {
  if (!Writer::instance().push(to_spdlog(level), text)) spdlog::log(to_spdlog(level), "{}", to_line(text));
}

void flush() { Writer::instance().flush(); }

}  // namespace troupe::base::log
