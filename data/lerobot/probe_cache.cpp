#include "data/lerobot/probe_cache.h"

#include <algorithm>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace troupe::data {

namespace {

class ProbeCache {
 public:
  ProbeCache(VideoProbe probe, std::size_t max_files)
      : probe_(probe ? std::move(probe) : VideoProbe(probe_video)), max_files_(std::max<std::size_t>(1, max_files)) {}

  Result<VideoInfo> get(const std::string& path) {
    const std::shared_ptr<Entry> entry = entry_of(path);
    const std::lock_guard lock(entry->mutex);
    if (!entry->result) entry->result = probe_(path);
    return *entry->result;
  }

 private:
  struct Entry {
    std::mutex mutex;
    std::optional<Result<VideoInfo>> result;
  };
  struct Slot {
    std::shared_ptr<Entry> entry;
    std::list<std::string>::iterator place;
  };

  std::shared_ptr<Entry> entry_of(const std::string& path) {
    const std::lock_guard lock(mutex_);
    const auto it = slots_.find(path);
    if (it != slots_.end()) {
      use_.splice(use_.begin(), use_, it->second.place);
      return it->second.entry;
    }
    use_.push_front(path);
    slots_[path] = {std::make_shared<Entry>(), use_.begin()};
    auto entry = slots_[path].entry;
    if (slots_.size() > max_files_) {
      slots_.erase(use_.back());
      use_.pop_back();
    }
    return entry;
  }

  VideoProbe probe_;
  std::size_t max_files_;
  std::mutex mutex_;  ///< of what follows
  std::map<std::string, Slot> slots_;
  std::list<std::string> use_;  ///< most recent first
};

}  // namespace

VideoProbe cached_probe(VideoProbe probe, std::size_t max_files) {
  auto cache = std::make_shared<ProbeCache>(std::move(probe), max_files);
  return [cache](const std::string& path) { return cache->get(path); };
}

}  // namespace troupe::data
