#include "base/tensorboard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <span>

#include "base/crc32c.h"

namespace troupe::base {

namespace {

static_assert(std::endian::native == std::endian::little, "records are written as they lie in memory");

template <class T>
void put_raw(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(static_cast<unsigned char>(value | 0x80));
  out += static_cast<char>(value);
}

// Protocol buffer fields: key = number * 8 + wire type (0 varint, 1 fixed 64, 2 length-delimited, 5 fixed 32).
void put_double(std::string& out, int number, double value) {
  put_varint(out, static_cast<std::uint64_t>(number) << 3 | 1);
  put_raw(out, value);
}
void put_integer(std::string& out, int number, std::int64_t value) {
  put_varint(out, static_cast<std::uint64_t>(number) << 3);
  put_varint(out, static_cast<std::uint64_t>(value));
}
void put_float(std::string& out, int number, float value) {
  put_varint(out, static_cast<std::uint64_t>(number) << 3 | 5);
  put_raw(out, value);
}
void put_bytes(std::string& out, int number, std::string_view bytes) {
  put_varint(out, static_cast<std::uint64_t>(number) << 3 | 2);
  put_varint(out, bytes.size());
  out.append(bytes);
}

std::uint32_t masked_crc(std::string_view bytes) {
  return std::rotr(crc32c(std::as_bytes(std::span(bytes))), 15) + 0xA282EAD8u;
}

std::string host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0 || name[0] == 0) return "localhost";
  return name;
}

/// A Summary of one Value.
std::string summary_of(const std::string& value) {
  std::string summary;
  put_bytes(summary, 1, value);
  return summary;
}

/// A Value {tag = 1, metadata = 9} that belongs to a plugin; its tensor follows as field 8.
/// SummaryMetadata {plugin_data = 1 {plugin_name = 1, content = 2}, data_class = 4 (2: a tensor)}.
std::string plugin_value(std::string_view tag, std::string_view plugin, std::string_view content) {
  std::string data, metadata, value;
  put_bytes(data, 1, plugin);
  put_bytes(data, 2, content);
  put_bytes(metadata, 1, data);
  put_integer(metadata, 4, 2);
  put_bytes(value, 1, tag);
  put_bytes(value, 9, metadata);
  return value;
}

/// TensorProto {dtype = 1, tensor_shape = 2} without dimensions: a scalar, whose value follows.
std::string scalar_tensor(int dtype) {
  std::string tensor;
  put_integer(tensor, 1, dtype);
  put_bytes(tensor, 2, "");
  return tensor;
}

/// google.protobuf.Value {number = 2, string = 3, bool = 4}.
std::string value_proto(const TensorboardHparam& value) {
  std::string out;
  if (const auto* number = std::get_if<double>(&value)) put_double(out, 2, *number);
  if (const auto* text = std::get_if<std::string>(&value)) put_bytes(out, 3, *text);
  if (const auto* flag = std::get_if<bool>(&value)) put_integer(out, 4, *flag ? 1 : 0);
  return out;
}

/// HParamInfo.type: 1 a string, 2 a bool, 3 a double.
int hparam_type(const TensorboardHparam& value) {
  return std::holds_alternative<double>(value) ? 3 : std::holds_alternative<bool>(value) ? 2 : 1;
}

/// Experiment {time_created_secs = 3, hparam_infos = 4 {name = 1, type = 4}, metric_infos = 5 {name = 1 {tag = 2}}}.
std::string experiment_proto(double wall, const std::map<std::string, TensorboardHparam>& hparams,
                             const std::vector<std::string>& metrics) {
  std::string experiment;
  put_double(experiment, 3, wall);
  for (const auto& [name, value] : hparams) {
    std::string info;
    put_bytes(info, 1, name);
    put_integer(info, 4, hparam_type(value));
    put_bytes(experiment, 4, info);
  }
  for (const std::string& metric : metrics) {
    std::string name, info;
    put_bytes(name, 2, metric);
    put_bytes(info, 1, name);
    put_bytes(experiment, 5, info);
  }
  return experiment;
}

/// SessionStartInfo {hparams = 1 {key = 1, value = 2}, start_time_secs = 5}.
std::string session_start_proto(double wall, const std::map<std::string, TensorboardHparam>& hparams) {
  std::string start;
  for (const auto& [name, value] : hparams) {
    std::string entry;
    put_bytes(entry, 1, name);
    put_bytes(entry, 2, value_proto(value));
    put_bytes(start, 1, entry);
  }
  put_double(start, 5, wall);
  return start;
}

/// A big-endian number of a PNG's header.
std::int64_t png_number(std::string_view png, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = at; i < at + 4; ++i) number = number << 8 | static_cast<unsigned char>(png[i]);
  return number;
}

/// Channels of a PNG's colour type: grey, -, RGB, palette (shown as RGB), grey and alpha, -, RGBA.
std::int64_t png_channels(char color_type) {
  constexpr std::int64_t kChannels[] = {1, 0, 3, 3, 2, 0, 4};
  const auto type = static_cast<unsigned char>(color_type);
  return type < std::size(kChannels) ? kChannels[type] : 0;
}

class TensorboardSink final : public MetricSink {
 public:
  explicit TensorboardSink(TensorboardFile file) : file_(std::move(file)) {}

  Result<void> write(std::int64_t step, double wall, std::int64_t /*samples*/,
                     const std::map<std::string, double>& values) override {
    return file_.add_scalars(step, wall, values);
  }
  Result<void> flush() override { return file_.flush(); }

 private:
  TensorboardFile file_;
};

}  // namespace

std::string tf_record(std::string_view data) {
  std::string record;
  put_raw(record, std::uint64_t{data.size()});
  put_raw(record, masked_crc(record));
  record.append(data);
  put_raw(record, masked_crc(data));
  return record;
}

Result<TensorboardFile> TensorboardFile::create(const std::string& dir, const Clock& clock) {
  const double wall = clock.wall_seconds();
  const std::string stem =
      fmt::format("{}/events.out.tfevents.{}.{}.{}.", dir, static_cast<std::int64_t>(wall), host_name(), ::getpid());
  for (int number = 0; number < 1000; ++number) {
    const std::string path = stem + std::to_string(number);
    auto file = AppendFile::open(path, AppendFile::Open::exclusive);
    if (std::error_code absent; !file && std::filesystem::exists(path, absent)) continue;
    if (!file) return file.error();
    std::string event;
    put_double(event, 1, wall);
    put_bytes(event, 3, "brain.Event:2");
    TROUPE_TRY(file->append(tf_record(event)));
    return TensorboardFile(std::move(*file), clock);
  }
  return Error{Errc::failed_precondition, stem + "0 to 999 exist already"};
}

Result<void> TensorboardFile::append(std::int64_t step, double wall, std::string_view summary) {
  std::string event;
  put_double(event, 1, wall);
  put_integer(event, 2, step);
  put_bytes(event, 5, summary);
  return file_.append(tf_record(event));
}

Result<void> TensorboardFile::add_scalars(std::int64_t step, double wall, const std::map<std::string, double>& values) {
  std::string summary;
  for (const auto& [name, value] : values) {
    std::string scalar;
    put_bytes(scalar, 1, name);
    put_float(scalar, 2, static_cast<float>(value));
    put_bytes(summary, 1, scalar);
  }
  return append(step, wall, summary);
}

Result<void> TensorboardFile::add_text(const std::string& tag, std::int64_t step, std::string_view markdown) {
  std::string value = plugin_value(tag, "text", ""), tensor = scalar_tensor(7);  // DT_STRING
  put_bytes(tensor, 8, markdown);
  put_bytes(value, 8, tensor);
  return append(step, clock_->wall_seconds(), summary_of(value));
}

Result<void> TensorboardFile::add_png(const std::string& tag, std::int64_t step, std::string_view png) {
  // Signature, length and name of the header chunk, width, height, bit depth, colour type: PNG specification, 11.2.2.
  constexpr std::string_view kSignature = "\x89PNG\r\n\x1a\n";
  const std::int64_t channels = png.size() > 25 && png.starts_with(kSignature) ? png_channels(png[25]) : 0;
  if (channels == 0) {
    return Error{Errc::invalid_argument,
                 fmt::format("picture '{}' for TensorBoard: its {} bytes are no PNG image", tag, png.size())};
  }
  // Image {height = 1, width = 2, colorspace = 3, encoded_image_string = 4}
  std::string image, value;
  put_integer(image, 1, png_number(png, 20));
  put_integer(image, 2, png_number(png, 16));
  put_integer(image, 3, channels);
  put_bytes(image, 4, png);
  put_bytes(value, 1, tag);
  put_bytes(value, 4, image);
  return append(step, clock_->wall_seconds(), summary_of(value));
}

Result<void> TensorboardFile::add_hparams_data(const char* tag, int number, std::string_view data) {
  std::string content;
  put_bytes(content, number, data);
  std::string value = plugin_value(tag, "hparams", content), tensor = scalar_tensor(1);  // DT_FLOAT
  put_float(tensor, 5, 0);  // what is shown stands in the metadata; a value without a tensor is left out
  put_bytes(value, 8, tensor);
  return append(0, clock_->wall_seconds(), summary_of(value));
}

Result<void> TensorboardFile::begin_session(const std::map<std::string, TensorboardHparam>& hparams,
                                            const std::vector<std::string>& metrics) {
  const double wall = clock_->wall_seconds();
  TROUPE_TRY(add_hparams_data("_hparams_/experiment", 2, experiment_proto(wall, hparams, metrics)));
  return add_hparams_data("_hparams_/session_start_info", 3, session_start_proto(wall, hparams));
}

Result<void> TensorboardFile::end_session(bool succeeded) {
  std::string end;
  put_integer(end, 1, succeeded ? 1 : 2);
  put_double(end, 2, clock_->wall_seconds());
  return add_hparams_data("_hparams_/session_end_info", 4, end);
}

Result<std::unique_ptr<MetricSink>> make_tensorboard_sink(const std::string& dir, const Clock& clock) {
  TROUPE_ASSIGN(TensorboardFile file, TensorboardFile::create(dir, clock));
  return std::unique_ptr<MetricSink>(std::make_unique<TensorboardSink>(std::move(file)));
}

}  // namespace troupe::base
