#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "data/image/video_frame.h"

namespace troupe {

struct InkColor {
  double red = 0, green = 0, blue = 0, opacity = 1;  ///< 0..1
  InkColor faded(double by) const { return {red, green, blue, opacity * by}; }
};

struct PicturePoint {
  double x = 0, y = 0;  ///< pixels, y down
};

struct PictureRect {
  double x = 0, y = 0, width = 0, height = 0;  ///< pixels
  double right() const { return x + width; }
  double bottom() const { return y + height; }
};

enum class TextAlign : std::uint8_t { left, centre, right };

struct TextInk {
  double size = 13;  ///< pixels
  InkColor color{0.13, 0.13, 0.15};
  TextAlign align = TextAlign::left;
  bool bold = false;
  bool upright = false;  ///< read from bottom to top
};

struct LineInk {
  double width = 1;  ///< pixels
  InkColor color{};
  bool dashed = false;
};

/// A white sheet to draw on, saved as PNG; the only place that knows cairo. Not thread-safe.
class Picture {
 public:
  Picture(std::int64_t width, std::int64_t height);
  ~Picture();
  Picture(const Picture&) = delete;
  Picture& operator=(const Picture&) = delete;

  /// The anchor is on the baseline.
  void text(PicturePoint anchor, const std::string& text, const TextInk& ink = {});
  double text_width(const std::string& text, const TextInk& ink = {}) const;
  void line(PicturePoint from, PicturePoint to, const LineInk& ink);
  void polyline(std::span<const PicturePoint> points, const LineInk& ink);
  void disc(PicturePoint centre, double radius, const InkColor& color);
  void fill(const PictureRect& area, const InkColor& color);
  void frame(const PictureRect& area, const LineInk& ink);
  /// Scales to `area`; enlarging keeps the pixels' edges.
  void image(const Rgb8View& pixels, const PictureRect& area);
  /// What is drawn until `unclip` stays inside `area`.
  void clip(const PictureRect& area);
  void unclip();

  /// Writes beside `path` and renames, so that a reader never sees half a file.
  /// Errors: failed_precondition when it cannot be written, resource_exhausted when the picture is too large to hold.
  Result<void> save(const std::string& path) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace troupe
