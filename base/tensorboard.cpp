#include "base/tensorboard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <filesystem>

#include "base/append_file.h"
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

class TensorboardSink final : public MetricSink {
 public:
  explicit TensorboardSink(AppendFile file) : file_(std::move(file)) {}

  Result<void> write(std::int64_t step, double wall, std::int64_t /*samples*/,
                     const std::map<std::string, double>& values) override {
    std::string summary;
    for (const auto& [name, value] : values) {
      std::string scalar;
      put_bytes(scalar, 1, name);
      put_float(scalar, 2, static_cast<float>(value));
      put_bytes(summary, 1, scalar);
    }
    std::string event;
    put_double(event, 1, wall);
    put_integer(event, 2, step);
    put_bytes(event, 5, summary);
    return file_.append(tf_record(event));
  }
  Result<void> flush() override { return file_.flush(); }

 private:
  AppendFile file_;
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

Result<std::unique_ptr<MetricSink>> make_tensorboard_sink(const std::string& dir, const Clock& clock) {
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
    return std::unique_ptr<MetricSink>(std::make_unique<TensorboardSink>(std::move(*file)));
  }
  return Error{Errc::failed_precondition, stem + "0 to 999 exist already"};
}

}  // namespace troupe::base
