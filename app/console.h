#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "app/terminal.h"
#include "base/append_file.h"
#include "base/event_fd.h"
#include "workers/controller/run_output.h"

namespace troupe::app {

/// The output of `troupe run`: what is said goes to stdout and stderr and is kept in a file, by a thread of its own, so
/// that a terminal that is stopped (Ctrl-S), a pipe that nobody reads or a closed output never holds up the job. The
/// file gets every line; an output that does not keep up loses lines, and is told how many. Where stdout is a terminal
/// a live line at its bottom shows where the job stands, in place of the progress lines.
class Console final : public RunOutput {
 public:
  /// `kept`: file that is appended to. Errors: those of AppendFile::open.
  static Result<std::unique_ptr<Console>> open(const std::string& kept);
  /// Writes what is left, for at most 2 s where an output does not take it.
  ~Console() override;

  void line(Severity severity, const std::string& text) override;
  void live(const LiveLine& line) override;
  void progress(const std::string& text) override;
  /// How far a work of many pieces is: the live line on a terminal, where its end is always shown, elsewhere a line
  /// every ten seconds.
  void work(const CountedWork& work);
  /// A text in the style of stdout, which is kept as `plain`. Both end without a newline.
  void styled(const std::string& text, const std::string& plain);
  /// Only for the file: what was said before it was there.
  void keep(const std::string& text);
  /// The style of stdout, for texts that are laid out before they are said.
  TextStyle style() const { return text_style_of(STDOUT_FILENO); }

 private:
  using Live = std::function<std::string(const TextStyle&)>;
  struct Item {
    Severity severity = Severity::info;
    /// With their newlines; of an output and of the file.
    std::string text, kept;
    /// Not for a terminal with a live line.
    bool is_progress = false;
    /// In place of a text: a live line that is shown in its turn.
    Live live = nullptr;
  };
  explicit Console(AppendFile kept);
  void push(Item item);
  void run();
  /// What came since the last call, in order; `live` stays as it is where no newer one came.
  std::deque<Item> take(Live& live, bool& ending);
  void show(const Item& item);
  void write_kept(const std::string& text);

  AppendFile kept_;
  bool keeps_ = true;
  Terminal out_, err_;
  std::mutex mutex_;
  std::deque<Item> items_;  // guarded by mutex_, as all below
  Live newest_;
  std::chrono::steady_clock::time_point said_ = std::chrono::steady_clock::now();  // of the last line of work()
  bool ending_ = false;
  EventFd wake_;
  std::thread thread_;
};

}  // namespace troupe::app
