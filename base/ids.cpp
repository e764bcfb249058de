#include "base/ids.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <cerrno>
#include <ctime>

#include "base/check.h"

namespace troupe::base {

namespace {
bool is_lower_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
}  // namespace

bool is_name(std::string_view text) noexcept {
  if (text.empty() || text.size() > 64 || !is_lower_or_digit(text.front())) return false;
  for (const char c : text) {
    if (!is_lower_or_digit(c) && c != '.' && c != '_' && c != '-') return false;
  }
  return true;
}

void random_bytes(void* out, std::size_t size) {
  auto* bytes = static_cast<unsigned char*>(out);
  while (size > 0) {
    const ssize_t got = ::getrandom(bytes, size, 0);
    if (got < 0 && errno == EINTR) continue;
    TROUPE_CHECK(got > 0, "getrandom gives bytes once the kernel has started");
    bytes += got;
    size -= static_cast<std::size_t>(got);
  }
}

std::uint64_t new_incarnation() {
  std::uint64_t id = 0;
  while (id == 0) random_bytes(&id, sizeof id);
  return id;
}

MessageId new_message_id() {
  MessageId id;
  random_bytes(id.data(), id.size());
  return id;
}

std::string to_hex(const MessageId& id) {
  std::string text;
  for (const std::uint8_t byte : id) text += fmt::format("{:02x}", byte);
  return text;
}

std::string new_run_id(const Clock& clock) {
  const auto seconds = static_cast<std::time_t>(clock.wall_seconds());
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::uint16_t random = 0;
  random_bytes(&random, sizeof random);
  return fmt::format("{:04}{:02}{:02}-{:02}{:02}{:02}-{:04x}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                     utc.tm_hour, utc.tm_min, utc.tm_sec, random);
}

}  // namespace troupe::base
