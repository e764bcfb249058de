#include "data/index/video_survey.h"

#include <chrono>

namespace troupe::data {

namespace {

constexpr std::chrono::seconds kProbeDeadline{10};

}  // namespace

Result<VideoInfo> VideoSurvey::probe(const std::string& path) {
  Seen* seen = nullptr;
  {
    const std::lock_guard lock(mutex_);
    auto& slot = seen_[path];
    if (slot == nullptr) slot = std::make_unique<Seen>();
    seen = slot.get();
  }
  std::call_once(seen->once, [&] { look(path, *seen); });
  return *seen->info;
}

void VideoSurvey::look(const std::string& path, Seen& seen) {
  const std::string name = path.substr(root_.size() + 1);
  const FileState state = times_.state(name);
  const auto place = old_ == nullptr ? std::nullopt : old_->find(name);
  if (place) {
    auto entry = old_->entry(*place);
    const auto packets = probe_ ? Result<std::shared_ptr<const PacketTable>>(nullptr) : old_->packets(*place);
    // what cannot be read from the old index is read from the file
    if (entry && times_.is_unchanged(name, entry->state) && entry->video && packets && (probe_ || *packets)) {
      seen.info = *entry->video;
      ++videos_reused_;
      const std::lock_guard lock(mutex_);
      files_.keep(*old_, *place);
      return;
    }
  }
  IndexedFile file;
  file.state = state;
  seen.info = read(path, file);
  ++videos_read_;
  if (!*seen.info) return;
  const std::lock_guard lock(mutex_);
  files_.add(name, file);
}

Result<VideoInfo> VideoSurvey::read(const std::string& path, IndexedFile& file) const {
  if (probe_) {
    TROUPE_ASSIGN(file.video, probe_(path));
    return *file.video;
  }
  TROUPE_ASSIGN(file.packets, read_packet_table(path, true, std::chrono::steady_clock::now() + kProbeDeadline));
  file.video = describe_video(*file.packets);
  file.one_ref = file.packets->one_ref;
  file.gop = gop_lengths(*file.packets);
  // hints for reports: a container that FFmpeg reads and this does not is used all the same
  if (const auto facts = read_mp4_facts(path)) file.container = *facts;
  return *file.video;
}

FileTableWriter VideoSurvey::take() {
  for (std::size_t i = 0; old_ != nullptr && i < old_->size(); ++i) {
    // a file that was looked at and is bad now is not taken over
    if (!seen_.contains(root_ + "/" + old_->path(i))) files_.keep(*old_, i);
  }
  return std::move(files_);
}

}  // namespace troupe::data
