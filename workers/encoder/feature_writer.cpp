#include "workers/encoder/feature_writer.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/durable_file.h"
#include "base/fault.h"
#include "base/file_io.h"
#include "base/hash.h"
#include "base/ids.h"
#include "base/log.h"

namespace troupe::workers {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kNameDigits = 16;
constexpr std::size_t kHeaderPerEntry = 240;  // at most: name, dtype, shape of six numbers, two offsets
constexpr std::size_t kMaxEntries = (kShardHeaderBytes - 512) / kHeaderPerEntry;
constexpr const char* kPart = ".part";
constexpr const char* kIndex = ".index";

/// The JSON header of a shard's entries, padded to its room.
std::string shard_header(const std::vector<FeatureRecord>& records) {
  nlohmann::json root = {{"__metadata__", {{"format", "troupe-features-1"}}}};
  for (const FeatureRecord& record : records) {
    std::string name = fmt::format("{}/{}", enum_name(record.kind), record.key.hex());
    // an entry that replaces a damaged one has its key
    for (int again = 2; root.contains(name); ++again)
      name = fmt::format("{}/{}.{}", enum_name(record.kind), record.key.hex(), again);
    root[name] = {{"dtype", record.dtype},
                  {"shape", record.shape},
                  {"data_offsets", {record.offset, record.offset + record.bytes}}};
  }
  std::string text = root.dump();
  text.resize(kShardHeaderBytes - sizeof(std::uint64_t), ' ');
  return text;
}

/// Gives a shard its header and its final name; one without entries is removed.
Result<void> finish_shard(FeatureFile& shard, const std::string& finished, const std::vector<FeatureRecord>& records) {
  if (records.empty()) {
    std::error_code ignored;  // an empty file that stays is read as no records
    fs::remove(shard.path(), ignored);
    return {};
  }
  TROUPE_TRY(fault_point("features.header", shard.path()));
  const std::string header = shard_header(records);
  std::byte length[sizeof(std::uint64_t)];
  for (std::size_t i = 0; i < sizeof length; ++i) length[i] = static_cast<std::byte>(header.size() >> (8 * i) & 0xFF);
  TROUPE_TRY(shard.write_at(length, 0));
  TROUPE_TRY(shard.write_at(std::as_bytes(std::span(header)), sizeof length));
  TROUPE_TRY(shard.truncate(kShardHeaderBytes + records.back().offset + records.back().bytes));
  TROUPE_TRY(shard.sync());
  TROUPE_TRY(fault_point("features.rename", shard.path()));
  return commit_file(shard.path(), finished);
}

/// The records of one shard of an index, up to the first that is torn or does not follow on the one before.
Result<std::vector<FeatureRecord>> records_of_shard(const FeatureFile& index, std::uint32_t shard) {
  TROUPE_ASSIGN(const std::uint64_t size, index.size());
  std::vector<std::byte> bytes(size);
  TROUPE_ASSIGN(const std::size_t got, index.read_at(bytes, 0));
  std::vector<FeatureRecord> records;
  std::uint64_t end = 0;
  for (std::size_t at = kIndexHeaderBytes; at + kIndexRecordBytes <= got; at += kIndexRecordBytes) {
    const auto record = decode_record(std::span<const std::byte>(bytes).subspan(at));
    if (!record || record->shard != shard) continue;
    if (record->offset != end) break;
    end += record->bytes;
    records.push_back(*record);
  }
  return records;
}

/// "NAME-0003.part" -> NAME and 3.
std::optional<std::pair<std::string, std::uint32_t>> part_of(const fs::path& path) {
  const std::string stem = path.stem().string();
  const std::size_t dash = stem.find('-');
  if (path.extension() != kPart || dash == std::string::npos || dash + 1 >= stem.size() || stem.size() - dash > 10)
    return std::nullopt;
  std::uint32_t shard = 0;
  for (const char digit : stem.substr(dash + 1)) {
    if (digit < '0' || digit > '9') return std::nullopt;
    shard = shard * 10 + static_cast<std::uint32_t>(digit - '0');
  }
  return std::pair{stem.substr(0, dash), shard};
}

/// Finishes one shard whose writer may be dead. True when it was.
Result<bool> seal_orphan(const std::string& folder, const std::string& part, const std::string& writer,
                         std::uint32_t number) {
  auto index = FeatureFile::open(index_file(folder, writer));
  if (!index) return index.error().code() == Errc::not_found ? Result<bool>(false) : Result<bool>(index.error());
  if (!(*index)->try_lock()) return false;
  auto shard = FeatureFile::open_writable(part);
  // another process finished it between the listing and the lock
  if (!shard) return shard.error().code() == Errc::not_found ? Result<bool>(false) : Result<bool>(shard.error());
  TROUPE_ASSIGN(auto records, records_of_shard(**index, number));
  TROUPE_ASSIGN(const std::uint64_t size, (*shard)->size());
  // a power cut may have kept the record and lost the bytes
  while (!records.empty() && kShardHeaderBytes + records.back().offset + records.back().bytes > size)
    records.pop_back();
  TROUPE_TRY(finish_shard(**shard, shard_file(folder, writer, number, true), records));
  return true;
}

}  // namespace

std::string index_file(const std::string& folder, const std::string& writer) { return folder + "/" + writer + kIndex; }

std::string shard_file(const std::string& folder, const std::string& writer, std::uint32_t shard, bool finished) {
  return fmt::format("{}/{}-{:04}{}", folder, writer, shard, finished ? ".safetensors" : kPart);
}

Result<std::unique_ptr<FeatureWriter>> FeatureWriter::create(const std::string& folder, std::uint64_t shard_bytes) {
  const std::string name = to_hex(new_message_id()).substr(0, kNameDigits);
  TROUPE_ASSIGN(auto index, FeatureFile::create(index_file(folder, name)));
  if (!index->try_lock()) return Error{Errc::unavailable, index->path() + ": the lock of a file just made is taken"};
  TROUPE_TRY(index->write_at(index_header(), 0));
  return std::unique_ptr<FeatureWriter>(new FeatureWriter(folder, name, std::move(index), shard_bytes));
}

FeatureWriter::~FeatureWriter() {
  if (const auto sealed = seal(); !sealed)
    log::warn("{}", sealed.error().with("the feature cache's last shard stays open").message());
  if (records_ != 0) return;
  std::error_code ignored;  // an index without records is read as empty
  fs::remove(index_->path(), ignored);
}

Result<void> FeatureWriter::open_shard() {
  TROUPE_ASSIGN(shard_, FeatureFile::create(shard_file(folder_, name_, next_shard_, false)));
  ++next_shard_;
  data_end_ = 0;
  in_shard_.clear();
  return sync_directory(folder_);
}

Result<void> FeatureWriter::append(FeatureRecord record, std::span<const std::byte> bytes) {
  const bool full =
      shard_ && !in_shard_.empty() && (data_end_ + bytes.size() > shard_bytes_ || in_shard_.size() >= kMaxEntries);
  if (full) TROUPE_TRY(seal());
  if (!shard_) TROUPE_TRY(open_shard());
  record.shard = next_shard_ - 1;
  record.offset = data_end_;
  record.bytes = bytes.size();
  record.checksum = xxh3_64(bytes);
  TROUPE_ASSIGN(const auto encoded, encode_record(record));
  TROUPE_TRY(fault_point("features.data", record.key.hex()));
  TROUPE_TRY(shard_->write_at(bytes, kShardHeaderBytes + data_end_));
  TROUPE_TRY(fault_point("features.index", record.key.hex()));
  TROUPE_TRY(index_->write_at(encoded, kIndexHeaderBytes + std::uint64_t{records_} * kIndexRecordBytes));
  ++records_;
  data_end_ += bytes.size();
  unsynced_ += bytes.size();
  in_shard_.push_back(std::move(record));
  return unsynced_ >= kSyncBytes ? sync() : Result<void>();
}

Result<void> FeatureWriter::sync() {
  if (shard_) TROUPE_TRY(shard_->sync());
  TROUPE_TRY(index_->sync());
  unsynced_ = 0;
  return {};
}

Result<void> FeatureWriter::seal() {
  if (!shard_) return {};
  TROUPE_TRY(sync());
  const auto shard = std::exchange(shard_, nullptr);
  return finish_shard(*shard, shard_file(folder_, name_, next_shard_ - 1, true), in_shard_);
}

Result<std::int64_t> seal_orphans(const std::string& folder) {
  std::int64_t sealed = 0;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const auto part = part_of(it->path());
    if (!part) continue;
    TROUPE_ASSIGN(const bool done, seal_orphan(folder, it->path().string(), part->first, part->second));
    sealed += done ? 1 : 0;
  }
  if (error) return file_error(folder, "cannot be listed", error.value());
  return sealed;
}

}  // namespace troupe::workers
