#include "workers/checkpoint/ledger.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/append_file.h"
#include "base/durable_file.h"
#include "base/fault.h"
#include "base/file_io.h"
#include "base/hash.h"
#include "configs/number_fields.h"
#include "configs/strict_json.h"

namespace troupe::workers {

namespace {

using nlohmann::json;

constexpr std::size_t kMostWaiting = std::size_t{64} << 20;

std::string check_of(const json& body) {
  return to_hex(xxh3_64(std::string_view(body.dump(-1, ' ', false, json::error_handler_t::replace))));
}

// Throws on anything that is not a line of ours.
LedgerRecord parse_line(const std::string& line) {
  constexpr int kDepth = 3;  // {"void": [[position, reason]]}
  json j = parse_strict_json(line, kDepth, "record", 0);
  const std::string check = j.at("check");
  j.erase("check");
  if (check != check_of(j)) throw std::runtime_error("its check does not match");
  LedgerRecord record;
  record.fence = hex_field(j.at("fence"));
  record.step = whole_field(j.at("step"));
  record.rank = whole_field(j.at("rank"));
  record.positions = whole_list(j.at("positions"));
  for (const json& h : j.at("xxh3")) record.xxh3.push_back(hex_field(h));
  for (const json& v : j.at("void")) record.voids.push_back({whole_field(v.at(0)), v.at(1)});
  if (j.contains("counters")) record.counters = whole_map(j.at("counters"));
  if (record.positions.size() != record.xxh3.size()) throw std::runtime_error("positions and xxh3 differ in number");
  return record;
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

LedgerWriter::LedgerWriter(std::string path, FileDescriptor fd, std::uint64_t fence, std::int64_t rank)
    : path_(std::move(path)), fd_(std::move(fd)), fence_(fence), rank_(rank) {}

Result<LedgerWriter> LedgerWriter::open(const std::string& folder, std::uint64_t fence, std::int64_t rank) {
  TROUPE_TRY(make_folders_durably(folder));
  const std::string path = folder + "/" + ledger_file_name(fence, rank);
  TROUPE_ASSIGN(FileDescriptor fd, open_file(path, O_RDWR | O_CREAT | O_APPEND));
  TROUPE_ASSIGN(const std::uint64_t whole, end_of_last_line(fd.get(), path));
  if (::ftruncate(fd.get(), static_cast<off_t>(whole)) != 0)
    return file_error(path, "cannot be cut to whole lines", errno);
  // The name must survive a crash too, or synced lines would be in a file nobody finds.
  TROUPE_TRY(sync_directory(folder));
  return LedgerWriter(path, std::move(fd), fence, rank);
}

Result<void> LedgerWriter::append(const LedgerRecord& record) {
  if (record.fence != fence_ || record.rank != rank_ || record.positions.size() != record.xxh3.size()) {
    return Error{Errc::invalid_argument,
                 fmt::format("{}: a record of fence {} and rank {} with {} positions and {} digests", path_,
                             to_hex(record.fence), record.rank, record.positions.size(), record.xxh3.size())};
  }
  waiting_ += ledger_line(record);
  auto written = write_waiting();
  if (!written && written.error().code() == Errc::resource_exhausted && waiting_.size() <= kMostWaiting) return {};
  return written;
}

Result<void> LedgerWriter::write_waiting() {
  if (waiting_.empty()) return {};
  const std::int64_t begin = ::lseek(fd_.get(), 0, SEEK_END);
  auto written = fault_point("ledger.append", path_);
  if (written) written = write_all(fd_.get(), std::as_bytes(std::span(waiting_)), path_);
  // A later line must not be glued to half of one.
  if (!written && ::ftruncate(fd_.get(), begin) != 0) return file_error(path_, "cannot be written nor cut back", errno);
  waits_for_ = written ? "" : written.error().message();
  if (written) waiting_.clear();
  return written;
}

Result<void> LedgerWriter::sync() {
  TROUPE_TRY(write_waiting());
  if (::fdatasync(fd_.get()) != 0)
    return Error{Errc::unavailable, file_error(path_, "cannot be synced", errno).message()};
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
      if (last) {
        scan.torn = true;
      } else if (scan.damage.empty()) {
        scan.damage = fmt::format("{}:{}: not a ledger record: {}", path, number, e.what());
        scan.records_before_damage = scan.records;
      }
      continue;
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
