#include "model/io/chunk_digests.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace troupe::model {

namespace {

constexpr std::size_t kChunk = static_cast<std::size_t>(kDigestChunk);
constexpr std::size_t kDigits = 32, kLine = kDigits + 1;

std::size_t count_chunks(std::size_t bytes) { return (bytes + kChunk - 1) / kChunk; }

bool is_digest(std::string_view text) {
  return text.size() == kDigits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

std::int64_t chunk_list_bytes(std::int64_t size) {
  return static_cast<std::int64_t>(count_chunks(static_cast<std::size_t>(size)) * kLine);
}

void ChunkDigests::update(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (!chunk_) chunk_.emplace();
    const std::size_t n = std::min(bytes.size(), kChunk - filled_);
    chunk_->update(bytes.first(n));
    bytes = bytes.subspan(n);
    filled_ += n;
    if (filled_ < kChunk) continue;
    lines_ += chunk_->hex() + "\n";
    chunk_.reset();
    filled_ = 0;
  }
}

std::string ChunkDigests::list() const { return chunk_ ? lines_ + chunk_->hex() + "\n" : lines_; }

CheckedChunks::CheckedChunks(std::string path, std::span<const std::byte> file, std::string list)
    : path_(std::move(path)),
      file_(file),
      list_(std::move(list)),
      chunks_(list_.size() / kLine),
      good_(std::make_unique<std::atomic<bool>[]>(chunks_)) {}

Result<CheckedChunks> CheckedChunks::open(std::string path, std::span<const std::byte> file, std::string list) {
  const auto bad = [&](const std::string& why) {
    return Error{Errc::data_loss, fmt::format("{}: its list of digests {}", path, why)};
  };
  const std::size_t chunks = count_chunks(file.size());
  if (list.size() != chunks * kLine)
    return bad(fmt::format("has {} bytes; {} chunks need {}", list.size(), chunks, chunks * kLine));
  for (std::size_t at = 0; at < list.size(); at += kLine) {
    if (!is_digest(std::string_view(list).substr(at, kDigits)) || list[at + kDigits] != '\n')
      return bad(fmt::format("is none at byte {}", at));
  }
  return CheckedChunks(std::move(path), file, std::move(list));
}

std::span<const std::byte> CheckedChunks::chunk(std::size_t index) const {
  return file_.subspan(index * kChunk, std::min(kChunk, file_.size() - index * kChunk));
}

Result<void> CheckedChunks::check(std::int64_t begin, std::int64_t count) const {
  if (count == 0) return {};
  const std::size_t first = static_cast<std::size_t>(begin) / kChunk,
                    last = static_cast<std::size_t>(begin + count - 1) / kChunk;
  for (std::size_t c = first; c <= last; ++c) {
    if (good_[c].load(std::memory_order_relaxed)) continue;
    const std::string digest = xxh3_128_hex(chunk(c)), written = list_.substr(c * kLine, kDigits);
    if (digest != written) {
      return Error{Errc::data_loss, fmt::format("{}: damaged in bytes [{}, {}): XXH3-128 is {}; {} was written", path_,
                                                c * kChunk, c * kChunk + chunk(c).size(), digest, written)};
    }
    good_[c].store(true, std::memory_order_relaxed);
  }
  return {};
}

std::int64_t CheckedChunks::checked_bytes() const {
  std::size_t bytes = 0;
  for (std::size_t c = 0; c < chunks_; ++c) {
    if (good_[c].load(std::memory_order_relaxed)) bytes += chunk(c).size();
  }
  return static_cast<std::int64_t>(bytes);
}

}  // namespace troupe::model
