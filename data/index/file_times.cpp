#include "data/index/file_times.h"

#include <sys/stat.h>

#include <optional>

#include "base/byte_stream.h"
#include "base/durable_file.h"
#include "base/file_io.h"
#include "base/hash.h"
#include "base/log.h"

namespace troupe::data {

namespace {

constexpr std::string_view kTimesMagic = "TRPTIMES1";

struct SizeAndTime {
  std::int64_t size = 0, modified_ns = 0;
};

std::optional<SizeAndTime> look_at(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return std::nullopt;
  return SizeAndTime{facts.st_size, facts.st_mtim.tv_sec * 1'000'000'000LL + facts.st_mtim.tv_nsec};
}

}  // namespace

void FileTimes::load(const std::string& file) {
  const auto text = base::read_file(file);
  if (!text || text->size() < kTimesMagic.size() + sizeof(std::uint64_t) || !text->starts_with(kTimesMagic)) return;
  const auto bytes = std::as_bytes(std::span(*text)).subspan(kTimesMagic.size());
  ByteReader seal(bytes.first(sizeof(std::uint64_t)));
  const auto body = bytes.subspan(sizeof(std::uint64_t));
  if (seal.number<std::uint64_t>() != xxh3_64(body)) return;
  ByteReader in(body);
  std::map<std::string, Seen> read;
  for (std::size_t left = in.count(4); left > 0 && in.ok(); --left) {
    std::string path(in.text());
    Seen seen;
    seen.modified_ns = in.number<std::int64_t>();
    seen.state.size = in.number<std::int64_t>();
    seen.state.content = in.number<std::uint64_t>();
    read[std::move(path)] = seen;
  }
  if (in.at_end()) stored_ = before_ = now_ = std::move(read);
}

void FileTimes::save(const std::string& file) const {
  if (now_ == stored_) return;
  ByteWriter out;
  out.varint(now_.size());
  for (const auto& [path, seen] : now_) {
    out.text(path);
    out.number(seen.modified_ns);
    out.number(seen.state.size);
    out.number(seen.state.content);
  }
  const std::string body = out.take();
  ByteWriter whole;
  whole.bytes(kTimesMagic);
  whole.number(xxh3_64(body));
  whole.bytes(body);
  const std::string folder = file.substr(0, file.rfind('/'));
  auto written = base::make_folders(folder);
  if (written) written = base::write_file_durably(file, whole.take());
  if (!written) log::debug("{}; files are compared by their contents", written.error().message());
}

FileState FileTimes::state(const std::string& path) {
  const auto now = look_at(root_ + "/" + path);
  if (!now) return {};
  {
    const std::lock_guard lock(mutex_);
    const auto it = now_.find(path);
    if (it != now_.end() && it->second.modified_ns == now->modified_ns && it->second.state.size == now->size)
      return it->second.state;
  }
  const FileState read = file_state(root_ + "/" + path);
  const std::lock_guard lock(mutex_);
  if (read.size == now->size) now_[path] = {now->modified_ns, read};
  return read;
}

bool FileTimes::is_unchanged(const std::string& path, const FileState& indexed) {
  const auto now = look_at(root_ + "/" + path);
  if (!now) return indexed.size < 0;
  return is_unchanged(path, indexed, now->size, now->modified_ns);
}

bool FileTimes::is_unchanged(const std::string& path, const FileState& indexed, std::int64_t size,
                             std::int64_t modified_ns) {
  if (size != indexed.size) return false;
  {
    const std::lock_guard lock(mutex_);
    const auto it = before_.find(path);
    if (it != before_.end() && it->second.state == indexed) return it->second.modified_ns == modified_ns;
  }
  if (!(file_state(root_ + "/" + path) == indexed)) return false;
  const std::lock_guard lock(mutex_);
  before_[path] = now_[path] = {modified_ns, indexed};
  return true;
}

void FileTimes::settle() {
  const std::lock_guard lock(mutex_);
  before_ = now_;
}

}  // namespace troupe::data
