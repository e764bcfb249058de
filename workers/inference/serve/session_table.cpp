#include "workers/inference/serve/session_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"

namespace troupe::workers {

Result<std::vector<Observation>> SessionTable::observe(const std::string& name, std::vector<Observation> rows,
                                                       Clock::time_point now) {
  if (!sessions_.contains(name)) TROUPE_TRY(make_room(now));
  Session& session = sessions_[name];
  session.last_used = now;
  TROUPE_TRY(check_images(session, rows));
  const bool is_first = session.rows.empty();
  if (is_first) {
    session.rows.resize(rows.size());
    for (Row& row : session.rows) row.episode = fmt::format("{}#{}", name, next_episode_++);
  }
  const std::size_t count = frames_for_call(policy_.info().frames_per_call, is_first);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Row& row = session.rows[i];
    rows[i].episode = row.episode;
    for (auto& [view, images] : rows[i].images) {
      FrameBuffer& camera = row.cameras[view];
      camera.push(images);
      images = camera.newest(count);
    }
  }
  return rows;
}

/// All or nothing: a call with one bad frame leaves no other behind.
Result<void> SessionTable::check_images(const Session& session, const std::vector<Observation>& rows) const {
  if (rows.empty()) return Error{Errc::invalid_argument, "a request without observations"};
  if (!session.rows.empty() && session.rows.size() != rows.size())
    return Error{Errc::invalid_argument,
                 fmt::format("{} observations in a session that had {} in its calls before; reset it to change that",
                             rows.size(), session.rows.size())};
  std::int64_t kept = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const auto& [view, images] : rows[i].images) {
      const FrameBuffer empty;
      const FrameBuffer* camera = &empty;
      if (!session.rows.empty()) {
        const auto found = session.rows[i].cameras.find(view);
        if (found != session.rows[i].cameras.end()) camera = &found->second;
      }
      if (const auto usable = camera->check(images); !usable) return usable.error().with(view);
      const std::int64_t frames = images.shape.size() == 4 ? images.shape.front() : 1;
      kept += static_cast<std::int64_t>(FrameBuffer::kDepth) * images.numel() / frames;
    }
  }
  if (kept > limits_.session_bytes) {
    return Error{Errc::resource_exhausted,
                 fmt::format("a session with these images keeps {} MiB; at most {} MiB are kept for one: send smaller "
                             "images or fewer robots",
                             kept >> 20, limits_.session_bytes >> 20)};
  }
  return {};
}

Result<void> SessionTable::make_room(Clock::time_point now) {
  if (size() < limits_.max_sessions) return {};
  const auto quietest = std::min_element(sessions_.begin(), sessions_.end(), [](const auto& a, const auto& b) {
    return a.second.last_used < b.second.last_used;
  });
  if (quietest == sessions_.end() || now - quietest->second.last_used < limits_.evict_after)
    return Error{Errc::resource_exhausted,
                 fmt::format("{} sessions are in use, the most this server keeps (--max-sessions)", size())};
  log::warn("serve: session {} makes room for another", quietest->first);
  ++evicted_;
  erase(std::string(quietest->first));
  return {};
}

void SessionTable::clear(Session& session) {
  for (const Row& row : session.rows) policy_.reset(row.episode);
  session.rows.clear();
}

void SessionTable::clear(const std::string& name) {
  const auto found = sessions_.find(name);
  if (found != sessions_.end()) clear(found->second);
}

void SessionTable::erase(const std::string& name) {
  const auto found = sessions_.find(name);
  if (found == sessions_.end()) return;
  clear(found->second);
  sessions_.erase(found);
}

std::int64_t SessionTable::expire(Clock::time_point now) {
  std::vector<std::string> quiet;
  for (const auto& [name, session] : sessions_) {
    if (now - session.last_used >= limits_.idle_timeout) quiet.push_back(name);
  }
  for (const std::string& name : quiet) erase(name);
  return static_cast<std::int64_t>(quiet.size());
}

}  // namespace troupe::workers
