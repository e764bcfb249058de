#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace troupe::data {

/// Where a video could not be read. It travels at the end of an error's text, as what is wrong with a sample, to the
/// learner, which reports it by the control message bad_clip.
struct ClipLocation {
  /// Path of the video file.
  std::string file{};
  /// Presentation index of the key frame that begins the group of pictures; -1: whole file.
  std::int64_t group = -1;
};

/// The same failure with the clip at the end of its text: " (clip FILE, group K)".
inline Error with_bad_clip(const Error& error, const ClipLocation& clip) {
  return {error.code(), fmt::format("{} (clip {}, group {})", error.message(), clip.file, clip.group)};
}

/// The last clip that a text names so, if there is one.
inline std::optional<ClipLocation> find_bad_clip(std::string_view text) {
  constexpr std::string_view kClip = " (clip ", kGroup = ", group ";
  const std::size_t group = text.rfind(kGroup);
  if (group == text.npos) return {};
  const std::size_t begin = text.rfind(kClip, group);
  if (begin == text.npos || begin + kClip.size() >= group) return {};
  ClipLocation clip{.file = std::string(text.substr(begin + kClip.size(), group - begin - kClip.size()))};
  const char* last = text.data() + text.size();
  const auto [end, failure] = std::from_chars(text.data() + group + kGroup.size(), last, clip.group);
  if (failure != std::errc() || end == last || *end != ')') return {};
  return clip;
}

}  // namespace troupe::data
