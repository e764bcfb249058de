#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/namespaces.h"
#include "base/result.h"
#include "image/video_frame.h"

namespace troupe::workers {

/// sRGB, not premultiplied.
struct InkColor {
  /// Each 0..1.
  double red = 0, green = 0, blue = 0, opacity = 1;
  InkColor faded(double by) const { return {red, green, blue, opacity * by}; }
};

/// A place on the sheet.
struct ChartPoint {
  /// Pixels, y down.
  double x = 0, y = 0;
};

/// A part of the sheet, by its upper left corner.
struct ChartRect {
  /// Pixels.
  double x = 0, y = 0, width = 0, height = 0;
  double right() const { return x + width; }
  double bottom() const { return y + height; }
};

enum class TextAlign : std::uint8_t { left, centre, right };

/// How a text is written, in the sans-serif font that cairo finds.
struct TextInk {
  /// Pixels.
  double size = 13;
  InkColor color{0.13, 0.13, 0.15};
  TextAlign align = TextAlign::left;
  bool bold = false;
  /// Read from bottom to top.
  bool upright = false;
};

struct LineInk {
  /// Pixels.
  double width = 1;
  InkColor color{};
  bool dashed = false;
};

/// A white sheet to draw on, saved as PNG; the only place that knows cairo. Lengths in pixels. Not thread-safe.
class Chart {
 public:
  Chart(std::int64_t width, std::int64_t height);
  ~Chart();
  Chart(const Chart&) = delete;
  Chart& operator=(const Chart&) = delete;

  /// The anchor is on the baseline.
  void text(ChartPoint anchor, const std::string& text, const TextInk& ink = {});
  /// The same, in a smaller size where it would be wider than `width`: whole whatever its length.
  void fitted_text(ChartPoint anchor, const std::string& text, TextInk ink, double width);
  /// Pixels that the text advances.
  double text_width(const std::string& text, const TextInk& ink = {}) const;
  void line(ChartPoint from, ChartPoint to, const LineInk& ink);
  void polyline(std::span<const ChartPoint> points, const LineInk& ink);
  /// Filled, closed from the last point to the first.
  void polygon(std::span<const ChartPoint> points, const InkColor& color);
  /// Filled.
  void disc(ChartPoint centre, double radius, const InkColor& color);
  void fill(const ChartRect& area, const InkColor& color);
  /// The outline of `area`.
  void frame(const ChartRect& area, const LineInk& ink);
  /// Scales to `area`; enlarging keeps the pixels' edges.
  void image(const Rgb8View& pixels, const ChartRect& area);
  /// What is drawn until `unclip` stays inside `area`.
  void clip(const ChartRect& area);
  void unclip();

  /// Writes beside `path` and renames, so that a reader never sees half a file. Errors: failed_precondition when it
  /// cannot be written, resource_exhausted when the image is too large to hold.
  Result<void> save(const std::string& path) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace troupe::workers
