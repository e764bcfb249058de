#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/metrics.h"

namespace troupe::base {

/// One TFRecord: u64 length, u32 masked crc32c(length), data, u32 masked crc32c(data); little endian.
/// mask(c) = rotate_right(c, 15) + 0xa282ead8.
/// Source: TensorFlow's record_writer.h. 16 bytes longer than `data`.
std::string tf_record(std::string_view data);

/// Scalars for TensorBoard in `dir`. Each start writes a new file events.out.tfevents.SECS.HOST.PID.N, which
/// TensorBoard shows as the continuation of the others; N counts up from 0 until the name is free. The first record
/// holds file_version "brain.Event:2", each later one an Event {wall_time = 1, step = 2, summary = 5} with all values
/// of a step. Values are stored as float32. `clock` gives SECS and the first record's time.
/// Events are TensorFlow's Event protocol buffers, written by hand. A metric's tag is its name. Errors: those of
/// AppendFile::open, when no free name could be made.
Result<std::unique_ptr<MetricSink>> make_tensorboard_sink(const std::string& dir, const Clock& clock = system_clock());

}  // namespace troupe::base
