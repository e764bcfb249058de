#include "data/video/clip_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/file_io.h"
#include "base/hash.h"
#include "base/log.h"

namespace troupe::data {

namespace {

namespace fs = std::filesystem;
static_assert(std::endian::native == std::endian::little, "cached clips are little-endian");

/// The first bytes of a cached clip (docs/video.md).
struct Header {
  char magic[8];
  std::uint32_t width, height, frames;
  std::uint8_t matrix, full_range, zero[2];
  std::uint64_t payload_bytes;
  std::uint8_t key[16];  // the name
  std::uint64_t payload_hash;
  std::uint64_t header_hash;  // of the bytes before it
};
static_assert(sizeof(Header) == 64 && offsetof(Header, header_hash) == 56);
constexpr char kMagic[8] = {'T', 'R', 'P', 'C', 'L', 'I', 'P', '1'};

constexpr auto kTouchAfter = std::chrono::minutes(10);
constexpr auto kAbandonedAfter = std::chrono::hours(1);

std::size_t frame_bytes(std::int64_t height, std::int64_t width) {
  return static_cast<std::size_t>(height * width + 2 * ((height + 1) / 2) * ((width + 1) / 2));
}

std::uint64_t hash_of_header(const Header& header) {
  return xxh3_64(std::as_bytes(std::span(&header, 1)).first(offsetof(Header, header_hash)));
}

void append_plane(std::vector<std::byte>& out, const std::uint8_t* plane, std::ptrdiff_t stride, std::int64_t rows,
                  std::int64_t columns) {
  const auto width = static_cast<std::size_t>(columns);
  std::size_t at = out.size();
  out.resize(at + width * static_cast<std::size_t>(rows));
  for (std::int64_t y = 0; y < rows; ++y, at += width) std::memcpy(out.data() + at, plane + y * stride, width);
}

void put_key(const std::string& key, std::uint8_t (&out)[16]) {
  for (std::size_t i = 0; i < 16; ++i) out[i] = static_cast<std::uint8_t>(std::stoi(key.substr(2 * i, 2), nullptr, 16));
}

/// What is wrong with a clip's bytes; empty when nothing is.
std::string fault_of(std::span<const std::byte> bytes, const std::string& key, std::size_t frames, std::int64_t height,
                     std::int64_t width, Header& header) {
  std::memcpy(&header, bytes.data(), sizeof header);
  std::uint8_t name[16];
  put_key(key, name);
  const std::span<const std::byte> payload = bytes.subspan(sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) return "it is no clip";
  if (hash_of_header(header) != header.header_hash) return "its header is damaged";
  if (std::memcmp(header.key, name, sizeof name) != 0) return "it belongs to another name";
  if (header.frames != frames || header.height != height || header.width != width) {
    return fmt::format("it has {} frames of {}x{}; wanted are {} of {}x{}", header.frames, header.width, header.height,
                       frames, width, height);
  }
  if (header.payload_bytes != payload.size() || payload.size() != frames * frame_bytes(height, width))
    return fmt::format("it has {} bytes of frames; wanted are {}", payload.size(), frames * frame_bytes(height, width));
  if (xxh3_64(payload) != header.payload_hash) return "its frames are damaged";
  return {};
}

struct StoredClip {
  fs::path path;
  std::int64_t bytes = 0;
  fs::file_time_type used;
};

/// The clips below the folder. Files under temporary names that were left behind by a killed process are deleted.
std::vector<StoredClip> list_clips(const std::string& folder) {
  std::vector<StoredClip> clips;
  std::error_code error;
  const auto now = fs::file_time_type::clock::now();
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;  // another process may delete it meanwhile
    const auto bytes = it->is_regular_file(gone) ? it->file_size(gone) : 0;
    const auto used = it->last_write_time(gone);
    if (gone) continue;
    if (it->path().extension() == ".clip") clips.push_back({it->path(), static_cast<std::int64_t>(bytes), used});
    if (it->path().extension() == ".tmp" && now - used > kAbandonedAfter) fs::remove(it->path(), gone);
  }
  return clips;
}

std::int64_t total_bytes(const std::vector<StoredClip>& clips) {
  std::int64_t total = 0;
  for (const StoredClip& clip : clips) total += clip.bytes;
  return total;
}

/// Deletes the clips that were used longest ago until a tenth of the bound is free; false: that did not succeed.
bool delete_oldest(const std::string& folder, std::int64_t most_bytes) {
  std::vector<StoredClip> clips = list_clips(folder);
  std::int64_t total = total_bytes(clips);
  std::sort(clips.begin(), clips.end(), [](const auto& a, const auto& b) { return a.used < b.used; });
  const std::int64_t wanted = most_bytes - most_bytes / 10;
  for (const StoredClip& clip : clips) {
    if (total <= wanted) break;
    std::error_code error;
    fs::remove(clip.path, error);  // no error where another process has deleted it
    if (!error) total -= clip.bytes;
  }
  return total <= wanted;
}

}  // namespace

Yuv420View CachedClip::frame(std::size_t place) const {
  const auto* y = reinterpret_cast<const std::uint8_t*>(file_.bytes().data()) + sizeof(Header) +
                  place * frame_bytes(height_, width_);
  const std::int64_t rows = (height_ + 1) / 2, columns = (width_ + 1) / 2;
  const std::uint8_t* u = y + height_ * width_;
  return {.y = y,
          .u = u,
          .v = u + rows * columns,
          .y_stride = width_,
          .u_stride = columns,
          .v_stride = columns,
          .height = height_,
          .width = width_,
          .matrix = matrix_,
          .full_range = full_range_};
}

void ClipRecord::add(const Yuv420View& frame) {
  if (frames_++ == 0) {
    bytes_.assign(sizeof(Header), std::byte{0});
    like_ = frame;
  }
  append_plane(bytes_, frame.y, frame.y_stride, frame.height, frame.width);
  append_plane(bytes_, frame.u, frame.u_stride, (frame.height + 1) / 2, (frame.width + 1) / 2);
  append_plane(bytes_, frame.v, frame.v_stride, (frame.height + 1) / 2, (frame.width + 1) / 2);
}

ClipCache::ClipCache(std::string folder, std::int64_t most_bytes)
    : folder_(std::move(folder)), most_bytes_(most_bytes) {}

std::string ClipCache::path_of(const std::string& key) const {
  return folder_ + "/" + key.substr(0, 2) + "/" + key.substr(2) + ".clip";
}

std::optional<CachedClip> ClipCache::find(const std::string& key, std::size_t frames, std::int64_t height,
                                          std::int64_t width) {
  const std::string path = path_of(key);
  auto file = MappedFile::open(path, sizeof(Header));
  if (!file && file.error().code() != Errc::data_loss) return {};
  Header header = {};
  const std::string fault = file ? fault_of(file->bytes(), key, frames, height, width, header) : "it is too short";
  std::error_code ignored;
  if (!fault.empty()) {
    ++damaged_;
    log::warn("clip cache: {}: {}; it is deleted and decoded again", path, fault);
    fs::remove(path, ignored);
    return {};
  }
  // the time of last use orders the deletion; a write per hit would cost more than it tells
  const auto now = fs::file_time_type::clock::now();
  if (now - fs::last_write_time(path, ignored) > kTouchAfter) fs::last_write_time(path, now, ignored);
  return CachedClip(std::move(*file), height, width, static_cast<ColorMatrix>(header.matrix), header.full_range != 0);
}

void ClipCache::store(const std::string& key, ClipRecord& clip) {
  if (broken_ || clip.frames_ == 0) return;
  Header header = {};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.width = static_cast<std::uint32_t>(clip.like_.width);
  header.height = static_cast<std::uint32_t>(clip.like_.height);
  header.frames = static_cast<std::uint32_t>(clip.frames_);
  header.matrix = static_cast<std::uint8_t>(clip.like_.matrix);
  header.full_range = clip.like_.full_range ? 1 : 0;
  const auto payload = std::span<const std::byte>(clip.bytes_).subspan(sizeof header);
  header.payload_bytes = payload.size();
  put_key(key, header.key);
  header.payload_hash = xxh3_64(payload);
  header.header_hash = hash_of_header(header);
  std::memcpy(clip.bytes_.data(), &header, sizeof header);

  const auto size = static_cast<std::int64_t>(clip.bytes_.size());
  if (size > most_bytes_ / 10) return;  // one clip must not push out the others
  Result<void> done = trimmed_ ? Result<void>() : trim();
  if (done) done = write(path_of(key), clip);
  if (done && (written_ += size) > most_bytes_ / 256) done = trim();
  if (done) return;
  broken_ = true;
  log::warn("clip cache: nothing more is written by this process: {}", done.error().message());
}

Result<void> ClipCache::write(const std::string& path, const ClipRecord& clip) {
  TROUPE_TRY(make_folders(fs::path(path).parent_path().string()));
  const std::string temporary =
      fmt::format("{}.{}-{}-{}.tmp", path, ::getpid(), static_cast<const void*>(this), sequence_++);
  // no fsync: what a crash leaves behind fails its checksum and is deleted
  TROUPE_ASSIGN(FileDescriptor file, open_file(temporary, O_WRONLY | O_CREAT | O_EXCL));
  auto written = write_all(file.get(), clip.bytes_, path);
  // some file systems run out of space only here
  if (::close(file.release()) != 0 && written) written = file_error(path, "cannot be closed", errno);
  if (written && ::rename(temporary.c_str(), path.c_str()) != 0)
    written = file_error(path, "cannot be renamed into place", errno);
  if (!written) ::unlink(temporary.c_str());
  return written;
}

Result<void> ClipCache::trim() {
  TROUPE_TRY(make_folders(folder_));
  TROUPE_ASSIGN(const FileDescriptor lock, open_file(folder_ + "/.lock", O_RDWR | O_CREAT));
  trimmed_ = true;
  written_ = 0;
  // A process that finds the lock taken goes on without trimming. Whoever held it therefore counts once more after
  // giving it back: what came too late for that count finds the lock free.
  while (total_bytes(list_clips(folder_)) > most_bytes_ - most_bytes_ / 64) {
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) break;
    const bool freed = delete_oldest(folder_, most_bytes_);
    ::flock(lock.get(), LOCK_UN);
    if (!freed) break;
  }
  return {};
}

}  // namespace troupe::data
