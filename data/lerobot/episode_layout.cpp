#include "data/lerobot/episode_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>

namespace troupe::data {

namespace {

using Places = std::span<const std::size_t>;

/// Calls `take` with the places of the episodes of every file; `key` gives (chunk, file) and what orders them inside.
template <class Key, class Take>
void for_each_file(std::size_t count, const Key& key, const Take& take) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  for (std::size_t begin = 0; begin < count;) {
    const auto file_of = [&](std::size_t i) {
      return std::tuple(std::get<0>(key(order[i])), std::get<1>(key(order[i])));
    };
    std::size_t end = begin + 1;
    while (end < count && file_of(end) == file_of(begin)) ++end;
    take(Places(order).subspan(begin, end - begin));
    begin = end;
  }
}

/// The frames of one camera in one file.
class FileLayout {
 public:
  FileLayout(std::vector<EpisodeRecord>& episodes, Places places, std::size_t camera, double fps)
      : episodes_(episodes), places_(places), camera_(camera), fps_(fps) {}

  VideoSpan& span(std::size_t i) { return episodes_[places_[i]].videos[camera_]; }
  std::int64_t length(std::size_t i) const { return episodes_[places_[i]].length; }
  double frame_of(double seconds) const { return seconds * fps_; }

  /// Adds up lengths. Returns the first episode whose time disagrees.
  std::optional<std::size_t> by_lengths() {
    std::optional<std::size_t> off;
    std::int64_t first = 0;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      span(i).first_frame = first;
      if (!off && std::abs(static_cast<double>(first) - frame_of(span(i).from_timestamp)) >= 0.5) off = i;
      first += length(i);
    }
    rows_ = first;
    return off;
  }

  /// The first episode that begins before its predecessor ends.
  std::optional<std::size_t> overlap() {
    for (std::size_t i = 1; i < places_.size(); ++i) {
      if (frame_of(span(i).from_timestamp) <= frame_of(span(i - 1).to_timestamp) - 0.5) return i;
    }
    return std::nullopt;
  }

  /// Do the frames nearest to the times follow one another inside a file of `frames`? An episode may lack its last.
  bool times_fit(std::int64_t frames) {
    std::int64_t end = 0;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const std::int64_t first = std::llround(frame_of(span(i).from_timestamp));
      if (first < end - 1) return false;
      end = first + length(i);
    }
    return end <= frames + 1;
  }

  /// The same where each episode is as long as its own times say: a `length` may be wrong.
  bool spans_fit(std::int64_t frames) {
    double end = 0;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const double first = frame_of(span(i).from_timestamp);
      if (first <= end - 0.5 || span(i).to_timestamp <= span(i).from_timestamp) return false;
      end = frame_of(span(i).to_timestamp);
    }
    return std::llround(end) <= frames + 1;
  }

  void by_times() {
    for (std::size_t i = 0; i < places_.size(); ++i)
      span(i).first_frame = std::llround(frame_of(span(i).from_timestamp));
  }

  void set_ends() {
    for (std::size_t i = 0; i + 1 < places_.size(); ++i) span(i).frames = span(i + 1).first_frame - span(i).first_frame;
    span(places_.size() - 1).frames = -1;
  }

  std::int64_t rows() const { return rows_; }
  std::int64_t episode(std::size_t i) const { return episodes_[places_[i]].index; }

 private:
  std::vector<EpisodeRecord>& episodes_;
  Places places_;
  std::size_t camera_;
  double fps_;
  std::int64_t rows_ = 0;
};

void lay_out_file(FileLayout file, const std::string& path, const CountFrames& count,
                  std::vector<DatasetProblem>& findings) {
  const auto off = file.by_lengths();
  const auto overlap = file.overlap();
  if (off || overlap) {
    const std::int64_t frames = count ? count(path) : -1;
    const bool times = frames >= 0 && frames != file.rows() && (file.times_fit(frames) || file.spans_fit(frames));
    std::string text;
    if (off) {
      text = fmt::format("{}: episode {} begins at {:.6f} s, which is frame {:.2f}; the lengths before it end at {}",
                         path, file.episode(*off), file.span(*off).from_timestamp,
                         file.frame_of(file.span(*off).from_timestamp), file.span(*off).first_frame);
    } else {
      text =
          fmt::format("{}: episode {} begins at {:.6f} s, before the one in front of it ends ({:.6f} s)", path,
                      file.episode(*overlap), file.span(*overlap).from_timestamp, file.span(*overlap - 1).to_timestamp);
    }
    if (frames >= 0) text += fmt::format("; the file has {} frames, its episodes {} rows", frames, file.rows());
    text += times ? "; the times are used" : "; the lengths are used";
    findings.push_back({"D15", path, std::move(text)});
    if (times) file.by_times();
  }
  file.set_ends();
}

}  // namespace

namespace {

/// The rows of one data file, in the order in which its episodes begin.
class RowLayout {
 public:
  RowLayout(std::vector<EpisodeRecord>& episodes, Places places) : episodes_(episodes), places_(places) {}

  EpisodeRecord& record(std::size_t i) { return episodes_[places_[i]]; }

  /// Takes dataset_from_index. Returns the first episode that begins inside another.
  std::optional<std::size_t> by_indices() {
    std::optional<std::size_t> overlap;
    std::int64_t end = 0;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      record(i).first_row = record(i).dataset_from - record(0).dataset_from;
      if (!overlap && record(i).first_row < end) overlap = i;
      end = std::max(end, record(i).first_row + record(i).length);
      sum_ += record(i).length;
    }
    return overlap;
  }

  void by_lengths() {
    std::int64_t sum = 0;
    for (const std::size_t place : places_) {
      episodes_[place].first_row = sum;
      sum += episodes_[place].length;
    }
  }

  /// Does a file of `rows` have them where the indices say, and not as many as the lengths? Then a length is wrong.
  bool indices_fit(std::int64_t rows) {
    for (std::size_t i = 1; i < places_.size(); ++i) {
      if (record(i).first_row <= record(i - 1).first_row) return false;
    }
    return rows >= 0 && rows != sum_ && record(places_.size() - 1).first_row < rows;
  }

 private:
  std::vector<EpisodeRecord>& episodes_;
  Places places_;
  std::int64_t sum_ = 0;
};

}  // namespace

void lay_out_rows(std::vector<EpisodeRecord>& episodes,
                  const std::function<std::string(std::int64_t chunk, std::int64_t file)>& path_of,
                  const CountRows& count, std::vector<DatasetProblem>& findings) {
  const auto key = [&](std::size_t i) {
    return std::tuple(episodes[i].data_chunk, episodes[i].data_file, episodes[i].dataset_from);
  };
  for_each_file(episodes.size(), key, [&](Places places) {
    RowLayout file(episodes, places);
    const auto overlap = file.by_indices();
    if (!overlap) return;
    const EpisodeRecord& e = file.record(*overlap);
    const EpisodeRecord& before = file.record(*overlap - 1);
    const std::string path = path_of(e.data_chunk, e.data_file);
    const bool indices = count && file.indices_fit(count(path));
    findings.push_back({"D15", path,
                        fmt::format("{}: episode {} begins at row {} of the dataset, inside episode {} ({} rows from "
                                    "{} on); the {} are used",
                                    path, e.index, e.dataset_from, before.index, before.length, before.dataset_from,
                                    indices ? "indices" : "lengths")});
    if (!indices) file.by_lengths();
  });
}

void lay_out_frames(std::vector<EpisodeRecord>& episodes, std::size_t camera, const LerobotInfo& info,
                    const std::function<std::string(std::int64_t chunk, std::int64_t file)>& path_of,
                    const CountFrames& count, std::vector<DatasetProblem>& findings) {
  const auto key = [&](std::size_t i) {
    const VideoSpan& v = episodes[i].videos[camera];
    return std::tuple(v.chunk, v.file, v.from_timestamp, episodes[i].dataset_from);
  };
  for_each_file(episodes.size(), key, [&](Places places) {
    const VideoSpan& v = episodes[places[0]].videos[camera];
    lay_out_file(FileLayout(episodes, places, camera, info.fps), path_of(v.chunk, v.file), count, findings);
  });
}

}  // namespace troupe::data
