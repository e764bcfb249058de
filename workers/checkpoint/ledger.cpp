#include "workers/checkpoint/ledger.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/durable_file.h"
#include "base/hash.h"
#include "workers/checkpoint/hex_field.h"

namespace troupe::workers {

namespace {

using nlohmann::json;

std::string check_of(const json& body) {
  return to_hex(xxh3_64(std::string_view(body.dump(-1, ' ', false, json::error_handler_t::replace))));
}

// Throws on anything that is not a line of ours.
LedgerRecord parse_line(const std::string& line) {
  json j = json::parse(line);
  const std::string check = j.at("check");
  j.erase("check");
  if (check != check_of(j)) throw std::runtime_error("its check does not match");
  LedgerRecord record;
  record.fence = hex_field(j.at("fence"));
  record.step = j.at("step");
  record.rank = j.at("rank");
  record.positions = j.at("positions").get<std::vector<std::int64_t>>();
  for (const json& h : j.at("xxh3")) record.xxh3.push_back(hex_field(h));
  for (const json& v : j.at("void")) record.voids.push_back({v.at(0), v.at(1)});
  if (j.contains("counters")) record.counters = j.at("counters").get<std::map<std::string, std::int64_t>>();
  if (record.positions.size() != record.xxh3.size()) throw std::runtime_error("positions and xxh3 differ in number");
  return record;
}

// Length up to and including the last newline.
Result<std::int64_t> whole_lines(const std::string& path, int fd) {
  std::int64_t size = ::lseek(fd, 0, SEEK_END);
  char block[4096];
  while (size > 0) {
    const std::int64_t begin = std::max<std::int64_t>(0, size - static_cast<std::int64_t>(sizeof(block)));
    const ssize_t n = ::pread(fd, block, static_cast<std::size_t>(size - begin), begin);
    if (n != size - begin) return file_error(path, "cannot be read", n < 0 ? errno : EIO);
    for (std::int64_t i = n - 1; i >= 0; --i) {
      if (block[i] == '\n') return begin + i + 1;
    }
    size = begin;
  }
  return 0;
}

}  // namespace

std::string ledger_line(const LedgerRecord& record) {
  json hashes = json::array(), voids = json::array();
  for (const std::uint64_t h : record.xxh3) hashes.push_back(to_hex(h));
  for (const VoidPosition& v : record.voids) voids.push_back({v.position, v.reason});
  json j = {{"fence", to_hex(record.fence)},
            {"positions", record.positions},
            {"rank", record.rank},
            {"step", record.step},
            {"void", voids},
            {"xxh3", hashes}};
  if (!record.counters.empty()) j["counters"] = record.counters;
  // A reason may quote a damaged file: other bytes than UTF-8 become U+FFFD, once, before the check is taken.
  j = json::parse(j.dump(-1, ' ', false, json::error_handler_t::replace));
  j["check"] = check_of(j);
  return j.dump() + "\n";
}

std::string ledger_file_name(std::uint64_t fence, std::int64_t rank) {
  return fmt::format("fence-{}-rank-{}.jsonl", to_hex(fence), rank);
}

LedgerWriter::LedgerWriter(std::string path, int fd, std::uint64_t fence, std::int64_t rank)
    : path_(std::move(path)), fd_(fd), fence_(fence), rank_(rank) {}
LedgerWriter::LedgerWriter(LedgerWriter&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), fence_(other.fence_), rank_(other.rank_) {}
LedgerWriter& LedgerWriter::operator=(LedgerWriter&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    path_ = std::move(other.path_);
    fd_ = std::exchange(other.fd_, -1);
    fence_ = other.fence_;
    rank_ = other.rank_;
  }
  return *this;
}
LedgerWriter::~LedgerWriter() {
  if (fd_ >= 0) ::close(fd_);
}

Result<LedgerWriter> LedgerWriter::open(const std::string& folder, std::uint64_t fence, std::int64_t rank) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return file_error(folder, "cannot be created", error.value());
  const std::string path = folder + "/" + ledger_file_name(fence, rank);
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return file_error(path, "cannot be opened", errno);
  LedgerWriter writer(path, fd, fence, rank);
  TROUPE_ASSIGN(const std::int64_t whole, whole_lines(path, fd));
  if (::ftruncate(fd, whole) != 0) return file_error(path, "cannot be cut to whole lines", errno);
  // The name must survive a crash too, or synced lines would be in a file nobody finds.
  TROUPE_TRY(sync_directory(folder));
  return writer;
}

Result<void> LedgerWriter::append(const LedgerRecord& record) {
  if (record.fence != fence_ || record.rank != rank_ || record.positions.size() != record.xxh3.size()) {
    return Error{Errc::invalid_argument,
                 fmt::format("{}: a record of fence {} and rank {} with {} positions and {} digests", path_,
                             to_hex(record.fence), record.rank, record.positions.size(), record.xxh3.size())};
  }
  const std::string line = ledger_line(record);
  const std::int64_t begin = ::lseek(fd_, 0, SEEK_END);
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t n = ::write(fd_, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int cause = errno;
      // A later line must not be glued to half of this one.
      if (::ftruncate(fd_, begin) != 0) return file_error(path_, "cannot be written nor cut back", errno);
      return file_error(path_, "cannot be written", cause);
    }
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Result<void> LedgerWriter::sync() {
  if (::fdatasync(fd_) != 0) return file_error(path_, "cannot be synced", errno);
  return {};
}

Result<LedgerScan> scan_ledger(const std::string& path, const std::function<Result<void>(const LedgerRecord&)>& visit) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return file_error(path, "cannot be opened", errno == 0 ? ENOENT : errno);
  LedgerScan scan;
  std::string line;
  std::int64_t number = 0;
  while (std::getline(in, line)) {
    ++number;
    const bool ended = !in.eof();
    const bool last = !ended || in.peek() == std::char_traits<char>::eof();
    LedgerRecord record;
    try {
      record = parse_line(line);
    } catch (const std::exception& e) {
      if (!last) return Error{Errc::data_loss, fmt::format("{}:{}: not a ledger record: {}", path, number, e.what())};
      scan.torn = true;
      return scan;
    }
    if (!ended) {
      scan.torn = true;
      return scan;
    }
    TROUPE_TRY(visit(record));
    ++scan.records;
  }
  return scan;
}

}  // namespace troupe::workers
