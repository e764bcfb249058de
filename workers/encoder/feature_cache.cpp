#include "workers/encoder/feature_cache.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/durable_file.h"
#include "base/file_io.h"
#include "base/hash.h"
#include "base/log.h"

namespace troupe::workers {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kDamageLines = 10;  // logged; the rest is only counted

}  // namespace

Result<std::shared_ptr<FeatureCache>> FeatureCache::open(const std::string& folder, const Options& options) {
  TROUPE_TRY(make_folders(folder + "/models"));
  TROUPE_TRY(seal_orphans(folder));
  std::shared_ptr<FeatureCache> cache(new FeatureCache(folder, options));
  TROUPE_TRY(cache->refresh());
  return cache;
}

std::uint32_t FeatureCache::writer_number(const std::string& name) {
  for (std::size_t i = 0; i < writers_.size(); ++i) {
    if (writers_[i].name == name) return static_cast<std::uint32_t>(i);
  }
  writers_.push_back({.name = name, .records = 0});
  return static_cast<std::uint32_t>(writers_.size() - 1);
}

void FeatureCache::add(const FeatureRecord& record, Place place) {
  places_.emplace(record.key, place);
  if (record.alias && !(record.alias == record.key)) places_.emplace(record.alias, place);
  ++stats_.entries;
  stats_.bytes += static_cast<std::int64_t>(record.bytes);
}

Result<void> FeatureCache::take_in(std::uint32_t number) {
  Writer& writer = writers_[number];
  const std::string path = index_file(folder_, writer.name);
  auto opened = FeatureFile::open(path);  // not kept: there may be many, and each is read through once
  if (!opened) return opened.error().code() == Errc::not_found ? Result<void>() : Result<void>(opened.error());
  TROUPE_ASSIGN(const std::uint64_t size, (*opened)->size());
  const std::uint64_t from = kIndexHeaderBytes + std::uint64_t{writer.records} * kIndexRecordBytes;
  if (size < from + kIndexRecordBytes) return {};
  if (writer.records == 0) {
    std::array<std::byte, kIndexHeaderBytes> header{};
    TROUPE_ASSIGN(const std::size_t got, (*opened)->read_at(header, 0));
    if (const auto sound = check_index_header(std::span(header).first(got)); !sound) return sound.error().with(path);
  }
  std::vector<std::byte> bytes((size - from) / kIndexRecordBytes * kIndexRecordBytes);
  TROUPE_ASSIGN(const std::size_t got, (*opened)->read_at(bytes, from));
  const std::size_t count = got / kIndexRecordBytes;
  for (std::size_t i = 0; i < count; ++i) {
    const auto record =
        decode_record(std::span<const std::byte>(bytes).subspan(i * kIndexRecordBytes, kIndexRecordBytes));
    if (!record && i + 1 == count) return {};  // it may just be being written: next time
    if (record) {
      add(*record, {number, writer.records});
    } else if (++stats_.damaged <= kDamageLines) {
      log::warn("{}: record {} is damaged; what it stood for is made anew when wanted", path, writer.records);
    }
    ++writer.records;
  }
  return {};
}

Result<void> FeatureCache::refresh_locked() {
  refreshed_ = std::chrono::steady_clock::now();
  std::error_code error;
  for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() != ".index") continue;
    TROUPE_TRY(take_in(writer_number(it->path().stem().string())));
  }
  if (error) return file_error(folder_, "cannot be listed", error.value());
  return {};
}

Result<void> FeatureCache::refresh() {
  const std::lock_guard lock(mutex_);
  return refresh_locked();
}

std::optional<FeatureCache::Place> FeatureCache::place_of(const FeatureKey& key) {
  const std::lock_guard lock(mutex_);
  auto it = places_.find(key);
  if (it == places_.end() && std::chrono::steady_clock::now() - refreshed_ >= options_.refresh_every) {
    if (const auto refreshed = refresh_locked(); !refreshed) log::warn("{}", refreshed.error().message());
    it = places_.find(key);
  }
  if (it == places_.end()) return std::nullopt;
  return it->second;
}

bool FeatureCache::contains(const FeatureKey& key) { return place_of(key).has_value(); }

Result<void> FeatureCache::read_shard(const std::string& writer, const FeatureRecord& record,
                                      std::span<std::byte> out) {
  // A shard changes its name once, when it is finished: whichever name is there, the bytes are the same.
  for (const bool finished : {true, false, true}) {
    const std::string path = shard_file(folder_, writer, record.shard, finished);
    auto file = files_.get(path);
    if (!file) {
      if (file.error().code() == Errc::not_found) continue;
      return file.error();
    }
    TROUPE_ASSIGN(const std::size_t got, (*file)->read_at(out, kShardHeaderBytes + record.offset));
    if (got == out.size()) return {};
    return Error{Errc::data_loss, fmt::format("{}: ends {} bytes early", path, out.size() - got)};
  }
  return Error{Errc::data_loss, shard_file(folder_, writer, record.shard, true) + ": is gone"};
}

Result<FeatureTensor> FeatureCache::read(const std::string& writer, Place place, const FeatureKey& key) {
  const std::string path = index_file(folder_, writer);
  TROUPE_ASSIGN(const auto index, files_.get(path));
  std::array<std::byte, kIndexRecordBytes> bytes{};
  TROUPE_ASSIGN(const std::size_t got,
                index->read_at(bytes, kIndexHeaderBytes + std::uint64_t{place.record} * kIndexRecordBytes));
  const auto record = decode_record(std::span(bytes).first(got));
  if (!record || !(record->key == key || record->alias == key)) {
    return Error{Errc::data_loss, fmt::format("{}: record {} is damaged", path, place.record)};
  }
  FeatureTensor tensor{.dtype = record->dtype, .shape = record->shape, .bytes = std::vector<std::byte>(record->bytes)};
  TROUPE_TRY(read_shard(writer, *record, tensor.bytes));
  if (xxh3_64(std::span<const std::byte>(tensor.bytes)) != record->checksum) {
    return Error{Errc::data_loss,
                 fmt::format("{}: the {} features of {} do not match their checksum",
                             shard_file(folder_, writer, record->shard, true), enum_name(record->kind), key.hex())};
  }
  return tensor;
}

void FeatureCache::condemn(const FeatureKey& key, Place place, const Error& why) {
  const std::lock_guard lock(mutex_);
  if (++stats_.damaged <= kDamageLines) log::warn("feature cache: {}; made anew", why.message());
  const auto [begin, end] = places_.equal_range(key);
  for (auto it = begin; it != end; ++it) {
    if (it->second.writer != place.writer || it->second.record != place.record) continue;
    places_.erase(it);
    return;
  }
}

std::optional<FeatureTensor> FeatureCache::find(const FeatureKey& key) {
  while (const auto place = place_of(key)) {
    std::string writer;
    {
      const std::lock_guard lock(mutex_);
      writer = writers_[place->writer].name;
    }
    auto tensor = read(writer, *place, key);
    if (!tensor) {
      condemn(key, *place, tensor.error());
      continue;
    }
    const std::lock_guard lock(mutex_);
    ++stats_.hits;
    stats_.bytes_read += static_cast<std::int64_t>(tensor->bytes.size());
    return std::move(*tensor);
  }
  const std::lock_guard lock(mutex_);
  ++stats_.misses;
  return std::nullopt;
}

Result<void> FeatureCache::put(FeatureKind kind, const FeatureKey& key, const FeatureKey& alias,
                               const FeatureTensor& tensor) {
  const std::lock_guard writing(write_mutex_);
  {
    const std::lock_guard lock(mutex_);
    if (places_.contains(key)) return {};
  }
  if (!writer_) {
    TROUPE_ASSIGN(writer_, FeatureWriter::create(folder_, options_.shard_bytes));
  }
  FeatureRecord record{.kind = kind,
                       .dtype = tensor.dtype,
                       .shape = tensor.shape,
                       .key = key,
                       .alias = alias,
                       .bytes = tensor.bytes.size()};
  // Under the lock: a refresh in between would take the record in a second time.
  const std::lock_guard lock(mutex_);
  TROUPE_TRY(writer_->append(record, tensor.bytes));
  const std::uint32_t number = writer_number(writer_->name());
  add(record, {number, writer_->records() - 1});
  writers_[number].records = writer_->records();
  ++stats_.written;
  stats_.bytes_written += static_cast<std::int64_t>(tensor.bytes.size());
  return {};
}

Result<void> FeatureCache::sync() {
  const std::lock_guard writing(write_mutex_);
  return writer_ ? writer_->sync() : Result<void>();
}

Result<void> FeatureCache::describe_model(const std::string& name, const std::string& identity) {
  const FeatureKey id = feature_key(FeatureKind::text, "model", identity);
  const std::string path = fmt::format("{}/models/{}-{}.json", folder_, name, id.hex().substr(0, 16));
  if (fs::exists(path)) return {};
  const nlohmann::json json = {{"format", 1}, {"network", name}, {"identity", identity}};
  return write_file_durably(path, json.dump(2) + "\n");
}

FeatureCache::Stats FeatureCache::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace troupe::workers
