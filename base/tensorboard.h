#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/append_file.h"
#include "base/clock.h"
#include "base/metrics.h"

namespace troupe::base {

/// One TFRecord: u64 length, u32 masked crc32c(length), data, u32 masked crc32c(data); little endian.
/// mask(c) = rotate_right(c, 15) + 0xa282ead8.
/// Source: TensorFlow's record_writer.h. 16 bytes longer than `data`.
std::string tf_record(std::string_view data);

/// A hyperparameter, as TensorBoard knows them.
using TensorboardHparam = std::variant<double, bool, std::string>;

/// One event file of TensorBoard, `dir`/events.out.tfevents.SECS.HOST.PID.N, written from its first record on; N
/// counts up from 0 until the name is free. TensorBoard shows the files of one folder as one run. The first record
/// holds file_version "brain.Event:2", each later one an Event {wall_time = 1, step = 2, summary = 5}. Events are
/// TensorFlow's Event protocol buffers, written by hand. `clock`, which outlives the file, gives SECS and the times of
/// all but scalars. Not thread-safe. Errors of all: those of AppendFile.
class TensorboardFile {
 public:
  /// Errors: failed_precondition when no free name could be made.
  static Result<TensorboardFile> create(const std::string& dir, const Clock& clock = system_clock());

  /// All values of a step, as float32. A metric's tag is its name.
  Result<void> add_scalars(std::int64_t step, double wall, const std::map<std::string, double>& values);
  /// Markdown, on the page "Text".
  Result<void> add_text(const std::string& tag, std::int64_t step, std::string_view markdown);
  /// A picture on the page "Images". Errors: invalid_argument when `png` is none.
  Result<void> add_png(const std::string& tag, std::int64_t step, std::string_view png);
  /// A row on the page "HParams": its hyperparameters, and the tags of the scalars that stand beside them.
  Result<void> begin_session(const std::map<std::string, TensorboardHparam>& hparams,
                             const std::vector<std::string>& metrics);
  /// How that row ended.
  Result<void> end_session(bool succeeded);
  Result<void> flush() { return file_.flush(); }

 private:
  TensorboardFile(AppendFile file, const Clock& clock) : file_(std::move(file)), clock_(&clock) {}
  Result<void> append(std::int64_t step, double wall, std::string_view summary);
  /// One HParamsPluginData of the plugin "hparams", whose oneof is field `number`.
  Result<void> add_hparams_data(const char* tag, int number, std::string_view data);

  AppendFile file_;
  const Clock* clock_;
};

/// Scalars for TensorBoard in `dir`: each start writes a TensorboardFile of its own. Errors: those of create().
Result<std::unique_ptr<MetricSink>> make_tensorboard_sink(const std::string& dir, const Clock& clock = system_clock());

}  // namespace troupe::base
