#include "data/video/sample_reader.h"

#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/fault.h"
#include "base/file_io.h"
#include "base/stopwatch.h"

namespace troupe::data {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kPieceBytes = 1 << 20;  // pieces end there, unless one sample is larger
constexpr std::int64_t kGapBytes = 64 << 10;   // unwanted bytes between samples that are read along

/// Buffers of one piece for all readers of the process; idle ones are kept by FFmpeg's pool.
AVBufferRef* take_buffer(std::int64_t bytes) {
  static AVBufferPool* const pool = av_buffer_pool_init(kPieceBytes + AV_INPUT_BUFFER_PADDING_SIZE, nullptr);
  if (bytes <= kPieceBytes) return pool == nullptr ? nullptr : av_buffer_pool_get(pool);
  return av_buffer_alloc(static_cast<std::size_t>(bytes + AV_INPUT_BUFFER_PADDING_SIZE));
}

/// Reads all bytes; runs on the reading thread.
Result<void> read_exactly(const OpenFile& file, std::int64_t offset, std::int64_t bytes, std::uint8_t* out) {
  TROUPE_TRY(fault_point("read", file.stem));
  const std::span wanted(reinterpret_cast<std::byte*>(out), static_cast<std::size_t>(bytes));
  TROUPE_ASSIGN(const std::size_t got, read_at(file.fd.get(), wanted, static_cast<std::uint64_t>(offset), file.path));
  if (got == wanted.size()) return {};
  return Error{Errc::data_loss,
               fmt::format("{}: reading {} bytes at {} failed: the file ends before", file.path, bytes, offset)};
}

bool tolerates_any_padding(const OpenFile& file) {
  const AVCodecID id = file.table->codec->codec_id;
  return id == AV_CODEC_ID_H264 || id == AV_CODEC_ID_HEVC || id == AV_CODEC_ID_AV1;
}

}  // namespace

/// Owns one reference to a buffer.
struct SampleReader::Buffer {
  explicit Buffer(AVBufferRef* buffer) : ref(buffer) {}
  ~Buffer() { av_buffer_unref(&ref); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  AVBufferRef* ref;
};

/// A piece that the reading thread fetches; both sides hold it.
struct SampleReader::Pending {
  std::shared_ptr<Buffer> buffer;
  std::optional<Result<void>> result;
  std::shared_ptr<ReadThread::Job> job;
};

SampleReader::SampleReader(std::shared_ptr<const OpenFile> file, ReadThread& thread, std::vector<std::int32_t> order,
                           Options options)
    : file_(std::move(file)), thread_(thread), order_(std::move(order)), options_(options) {
  plan();
}

SampleReader::~SampleReader() = default;

const VideoSample& SampleReader::sample(std::size_t place) const {
  return file_->table->samples[static_cast<std::size_t>(order_[place])];
}

void SampleReader::plan() {
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const VideoSample& s = sample(i);
    if (!pieces_.empty()) {
      Piece& p = pieces_.back();
      const std::int64_t gap = s.offset - (p.offset + p.bytes);
      if (gap >= 0 && gap <= kGapBytes && s.offset + s.size - p.offset <= kPieceBytes) {
        p.last = i;
        p.bytes = s.offset + s.size - p.offset;
        continue;
      }
    }
    pieces_.push_back({.first = i, .last = i, .offset = s.offset, .bytes = s.size});
  }
}

Result<std::span<const std::uint8_t>> SampleReader::next() {
  if (!buffer_ || place_ > pieces_[piece_].last) {
    const auto begin = Clock::now();
    const auto loaded = load(buffer_ ? piece_ + 1 : 0);
    seconds_ += seconds_since(begin);
    TROUPE_TRY(loaded);
  }
  const VideoSample& s = sample(place_++);
  current_ = {buffer_->ref->data + (s.offset - pieces_[piece_].offset), static_cast<std::size_t>(s.size)};
  return current_;
}

Result<void> SampleReader::load(std::size_t index) {
  const Piece& piece = pieces_[index];
  buffer_.reset();
  piece_ = index;
  bytes_read_ += piece.bytes;
  std::shared_ptr<Pending> pending = std::exchange(ahead_, nullptr);
  if (!pending) {
    if (options_.cached_reads) {
      TROUPE_ASSIGN(const bool cached, load_cached(piece));
      if (cached) return {};
    }
    TROUPE_ASSIGN(pending, start(piece));
  }
  // the disk is slow: let it work on the next piece while this one is decoded
  if (index + 1 < pieces_.size()) {
    TROUPE_ASSIGN(ahead_, start(pieces_[index + 1]));
  }
  if (!thread_.wait(pending->job, options_.deadline)) {
    return ReadThread::out_of_time(file_->path,
                                   fmt::format("reading {} bytes at {}", piece.bytes, piece.offset).c_str());
  }
  TROUPE_TRY(*pending->result);
  buffer_ = pending->buffer;
  return {};
}

Result<bool> SampleReader::load_cached(const Piece& piece) {
  auto buffer = std::make_shared<Buffer>(take_buffer(piece.bytes));
  if (buffer->ref == nullptr) {
    return Error{Errc::resource_exhausted, fmt::format("{}: no memory for {} bytes", file_->path, piece.bytes)};
  }
  for (std::int64_t done = 0; done < piece.bytes;) {
    iovec rest{buffer->ref->data + done, static_cast<std::size_t>(piece.bytes - done)};
    const ssize_t got = ::preadv2(file_->fd.get(), &rest, 1, piece.offset + done, RWF_NOWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;  // not in memory, not supported, or an error that the full read will name
    done += got;
  }
  buffer_ = std::move(buffer);
  return true;
}

Result<std::shared_ptr<SampleReader::Pending>> SampleReader::start(const Piece& piece) {
  auto pending = std::make_shared<Pending>();
  pending->buffer = std::make_shared<Buffer>(take_buffer(piece.bytes));
  if (pending->buffer->ref == nullptr) {
    return Error{Errc::resource_exhausted, fmt::format("{}: no memory for {} bytes", file_->path, piece.bytes)};
  }
  // weak: the job lies in `pending`, and must not keep it alive by itself
  TROUPE_ASSIGN(pending->job,
                thread_.start([file = file_, piece, buffer = pending->buffer, out = std::weak_ptr<Pending>(pending)] {
                  Result<void> done = read_exactly(*file, piece.offset, piece.bytes, buffer->ref->data);
                  if (const auto waiting = out.lock()) waiting->result = std::move(done);
                }));
  return pending;
}

Result<void> SampleReader::fill(AVPacket& packet) {
  av_packet_unref(&packet);
  const int size = static_cast<int>(current_.size());
  if (!tolerates_any_padding(*file_)) {
    if (av_new_packet(&packet, size) < 0)
      return Error{Errc::resource_exhausted, fmt::format("{}: no memory for {} bytes", file_->path, size)};
    std::copy(current_.begin(), current_.end(), packet.data);
    return {};
  }
  packet.buf = av_buffer_ref(buffer_->ref);
  if (packet.buf == nullptr)
    return Error{Errc::resource_exhausted, fmt::format("{}: no memory for a packet", file_->path)};
  packet.data = packet.buf->data + (current_.data() - buffer_->ref->data);
  packet.size = size;
  return {};
}

}  // namespace troupe::data
