#include "comm/control/envelope.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <string_view>

#include "base/check.h"
#include "base/crc32c.h"
#include "comm/control/msgpack_io.h"

namespace troupe::comm {

namespace {

constexpr std::size_t kMaxFrame = 1024;
constexpr std::size_t kMaxName = 64;
constexpr std::uint32_t kMaxTtlMs = 3'600'000;
constexpr std::uint16_t kMajor = 0x01;
constexpr WireLimits kLimits{.array = 64, .map = 32, .str = 128, .bin = 64, .depth = 4};

/// Names go into log lines: printable ASCII without blanks.
bool is_name(std::string_view name) {
  return name.size() <= kMaxName && std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < 0x7F; });
}

Result<void> check_fields(const Envelope& e) {
  if (!is_name(e.from) || !is_name(e.to)) {
    return Error{Errc::invalid_argument,
                 fmt::format("envelope: from ({} bytes) and to ({} bytes) are at most {} printable ASCII characters",
                             e.from.size(), e.to.size(), kMaxName)};
  }
  if (e.ttl_ms > kMaxTtlMs) {
    return Error{Errc::invalid_argument,
                 fmt::format("envelope: ttl is {} ms; at most {} are allowed", e.ttl_ms, kMaxTtlMs)};
  }
  return {};
}

std::array<std::uint8_t, 16> random_id() {
  std::array<std::uint8_t, 16> id{};
  // 16 bytes come whole once the kernel's pool is seeded; only a signal before that can interrupt
  ssize_t got = -1;
  do {
    got = ::getrandom(id.data(), id.size(), 0);
  } while (got < 0 && errno == EINTR);
  TROUPE_CHECK(got == static_cast<ssize_t>(id.size()), "getrandom() gives 16 bytes in one call");
  return id;
}

/// The integers of an envelope as wide as the wire has them.
struct Wide {
  std::uint64_t version = 0, type = 0, incarnation = 0, fence = 0, ttl = 0, plen = 0, psum = 0;
};

Result<void> check_wide(const Wide& w, std::span<const std::byte> payload) {
  const auto over = [](std::string_view what, std::uint64_t value, std::uint64_t limit) {
    return Error{Errc::invalid_argument, fmt::format("envelope: {} is {}; at most {} is allowed", what, value, limit)};
  };
  constexpr std::uint64_t kU16 = std::numeric_limits<std::uint16_t>::max();
  if (w.version > kU16) return over("ver", w.version, kU16);
  if (w.version >> 8 != kMajor) {
    return Error{
        Errc::invalid_argument,
        fmt::format("envelope: protocol version {}.{}; this build speaks {}.x. Run one build of troupe on all nodes",
                    w.version >> 8, w.version & 0xFF, kMajor)};
  }
  if (w.type > kU16) return over("type", w.type, kU16);
  if (w.ttl > kMaxTtlMs) return over("ttl", w.ttl, kMaxTtlMs);
  if (w.plen != payload.size()) {
    return Error{Errc::invalid_argument,
                 fmt::format("envelope: plen is {}; the payload has {} bytes", w.plen, payload.size())};
  }
  if (w.psum != crc32c(payload)) return Error{Errc::invalid_argument, "envelope: psum does not match the payload"};
  return {};
}

}  // namespace

Envelope make_envelope(std::uint16_t type, std::string from, std::string to, std::uint64_t fence) {
  Envelope e;
  e.type = type;
  e.id = random_id();
  e.from = std::move(from);
  e.to = std::move(to);
  e.fence = fence;
  return e;
}

Envelope make_reply(std::uint16_t type, const Envelope& request) {
  Envelope e = make_envelope(type, request.to, request.from, request.fence);
  e.re = request.id;
  return e;
}

Result<std::vector<std::byte>> encode_envelope(const Envelope& envelope, std::span<const std::byte> payload) {
  TROUPE_TRY(check_fields(envelope));
  if (payload.size() > std::numeric_limits<std::uint32_t>::max()) {
    return Error{Errc::invalid_argument,
                 fmt::format("envelope: a payload of {} bytes; at most 4 GiB can be sent", payload.size())};
  }
  Envelope e = envelope;
  Wide w{e.version, e.type, e.incarnation, e.fence, e.ttl_ms, payload.size(), crc32c(payload)};
  std::vector<Field> fields{{0, &w.version}, {1, &w.type}, {2, &e.id}};
  if (e.re != std::array<std::uint8_t, 16>{}) fields.push_back({3, &e.re});
  fields.insert(fields.end(),
                {{4, &e.from}, {5, &w.incarnation}, {6, &w.fence}, {7, &w.ttl}, {11, &w.plen}, {12, &w.psum}});
  if (!e.to.empty()) fields.push_back({13, &e.to});
  if (e.number != 0) fields.push_back({14, &e.number});
  if (e.received != 0) fields.push_back({15, &e.received});
  return write_map(fields, kLimits);
}

Result<Envelope> decode_envelope(std::span<const std::byte> frame, std::span<const std::byte> payload) {
  if (frame.size() > kMaxFrame) {
    return Error{Errc::invalid_argument,
                 fmt::format("envelope: a frame of {} bytes; at most {} are taken", frame.size(), kMaxFrame)};
  }
  Envelope e;
  Wide w;
  std::array<Field, 13> fields{{{0, &w.version},
                                {1, &w.type},
                                {2, &e.id},
                                {4, &e.from},
                                {5, &w.incarnation},
                                {7, &w.ttl},
                                {11, &w.plen},
                                {12, &w.psum},
                                {3, &e.re},
                                {6, &w.fence},
                                {13, &e.to},
                                {14, &e.number},
                                {15, &e.received}}};
  constexpr std::size_t kRequired = 8;  // the first ones
  if (auto read = read_map(frame, fields, kLimits); !read) return read.error().with("envelope");
  for (std::size_t i = 0; i < kRequired; ++i) {
    if (!fields[i].present)
      return Error{Errc::invalid_argument, fmt::format("envelope: key {} is missing", fields[i].key)};
  }
  TROUPE_TRY(check_wide(w, payload));
  e.version = static_cast<std::uint16_t>(w.version);
  e.type = static_cast<std::uint16_t>(w.type);
  e.incarnation = w.incarnation;
  e.fence = w.fence;
  e.ttl_ms = static_cast<std::uint32_t>(w.ttl);
  TROUPE_TRY(check_fields(e));
  return e;
}

}  // namespace troupe::comm
