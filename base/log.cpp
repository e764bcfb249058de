#include "base/log.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <mutex>
#include <utility>

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

}  // namespace

void divert_stderr(std::function<void(const std::string&)> writer) { stderr_sink()->divert(std::move(writer)); }

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
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

void write(Level level, std::string_view text) { spdlog::log(to_spdlog(level), "{}", text); }

}  // namespace troupe::base::log
