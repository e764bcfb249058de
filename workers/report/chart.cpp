#include "workers/report/chart.h"

#include <cairo.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <numbers>

namespace troupe::workers {

namespace {

struct FreeSurface {
  void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
};
struct FreeContext {
  void operator()(cairo_t* context) const { cairo_destroy(context); }
};

void set_color(cairo_t* context, const InkColor& c) {
  cairo_set_source_rgba(context, c.red, c.green, c.blue, c.opacity);
}

void set_font(cairo_t* context, const TextInk& ink) {
  cairo_select_font_face(context, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                         ink.bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
  cairo_set_font_size(context, ink.size);
}

void set_line(cairo_t* context, const LineInk& ink) {
  set_color(context, ink.color);
  cairo_set_line_width(context, ink.width);
  cairo_set_line_join(context, CAIRO_LINE_JOIN_ROUND);
  cairo_set_line_cap(context, ink.dashed ? CAIRO_LINE_CAP_BUTT : CAIRO_LINE_CAP_ROUND);
  const double dashes[] = {5, 3};
  cairo_set_dash(context, dashes, ink.dashed ? 2 : 0, 0);
}

}  // namespace

struct Chart::State {
  std::unique_ptr<cairo_surface_t, FreeSurface> surface;
  std::unique_ptr<cairo_t, FreeContext> context;
};

Chart::Chart(std::int64_t width, std::int64_t height) : state_(std::make_unique<State>()) {
  state_->surface.reset(
      cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(width), static_cast<int>(height)));
  state_->context.reset(cairo_create(state_->surface.get()));
  set_color(state_->context.get(), {1, 1, 1});
  cairo_paint(state_->context.get());
}

Chart::~Chart() = default;

double Chart::text_width(const std::string& text, const TextInk& ink) const {
  cairo_t* c = state_->context.get();
  set_font(c, ink);
  cairo_text_extents_t extents;
  cairo_text_extents(c, text.c_str(), &extents);
  return extents.x_advance;
}

void Chart::text(ChartPoint anchor, const std::string& text, const TextInk& ink) {
  cairo_t* c = state_->context.get();
  const double width = text_width(text, ink);
  const double shift = ink.align == TextAlign::left ? 0 : ink.align == TextAlign::centre ? -width / 2 : -width;
  cairo_save(c);
  cairo_translate(c, anchor.x, anchor.y);
  if (ink.upright) cairo_rotate(c, -std::numbers::pi / 2);
  set_color(c, ink.color);
  cairo_move_to(c, shift, 0);
  cairo_show_text(c, text.c_str());
  cairo_restore(c);
}

void Chart::fitted_text(ChartPoint anchor, const std::string& text, TextInk ink, double width) {
  // Hinting makes widths grow a little faster or slower than sizes.
  for (int tries = 0; tries < 8 && text_width(text, ink) > width; ++tries)
    ink.size *= 0.99 * width / text_width(text, ink);
  this->text(anchor, text, ink);
}

void Chart::line(ChartPoint from, ChartPoint to, const LineInk& ink) {
  const ChartPoint ends[] = {from, to};
  polyline(ends, ink);
}

void Chart::polyline(std::span<const ChartPoint> points, const LineInk& ink) {
  if (points.size() < 2) return;
  cairo_t* c = state_->context.get();
  set_line(c, ink);
  cairo_new_path(c);
  for (const ChartPoint& p : points) cairo_line_to(c, p.x, p.y);
  cairo_stroke(c);
}

void Chart::polygon(std::span<const ChartPoint> points, const InkColor& color) {
  cairo_t* c = state_->context.get();
  set_color(c, color);
  cairo_new_path(c);
  for (const ChartPoint& p : points) cairo_line_to(c, p.x, p.y);
  cairo_close_path(c);
  cairo_fill(c);
}

void Chart::disc(ChartPoint centre, double radius, const InkColor& color) {
  cairo_t* c = state_->context.get();
  set_color(c, color);
  cairo_new_path(c);
  cairo_arc(c, centre.x, centre.y, radius, 0, 2 * std::numbers::pi);
  cairo_fill(c);
}

void Chart::fill(const ChartRect& area, const InkColor& color) {
  cairo_t* c = state_->context.get();
  set_color(c, color);
  cairo_rectangle(c, area.x, area.y, area.width, area.height);
  cairo_fill(c);
}

void Chart::frame(const ChartRect& area, const LineInk& ink) {
  cairo_t* c = state_->context.get();
  set_line(c, ink);
  cairo_rectangle(c, area.x, area.y, area.width, area.height);
  cairo_stroke(c);
}

void Chart::image(const Rgb8View& pixels, const ChartRect& area) {
  if (pixels.width <= 0 || pixels.height <= 0) return;
  const std::unique_ptr<cairo_surface_t, FreeSurface> source(
      cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(pixels.width), static_cast<int>(pixels.height)));
  cairo_surface_flush(source.get());
  unsigned char* data = cairo_image_surface_get_data(source.get());
  if (data == nullptr) return;  // too large; save() reports the sheet's own state
  const int stride = cairo_image_surface_get_stride(source.get());
  for (std::int64_t y = 0; y < pixels.height; ++y) {
    const std::uint8_t* in = pixels.row(y);
    for (std::int64_t x = 0; x < pixels.width; ++x, in += 3) {
      const std::uint32_t packed = std::uint32_t{in[0]} << 16 | std::uint32_t{in[1]} << 8 | in[2];
      std::memcpy(data + y * stride + 4 * x, &packed, 4);
    }
  }
  cairo_surface_mark_dirty(source.get());
  cairo_t* c = state_->context.get();
  cairo_save(c);
  cairo_translate(c, area.x, area.y);
  const double scale_x = area.width / static_cast<double>(pixels.width),
               scale_y = area.height / static_cast<double>(pixels.height);
  cairo_scale(c, scale_x, scale_y);
  cairo_set_source_surface(c, source.get(), 0, 0);
  cairo_pattern_set_filter(cairo_get_source(c),
                           scale_x >= 1 && scale_y >= 1 ? CAIRO_FILTER_NEAREST : CAIRO_FILTER_GOOD);
  cairo_pattern_set_extend(cairo_get_source(c), CAIRO_EXTEND_PAD);
  cairo_rectangle(c, 0, 0, static_cast<double>(pixels.width), static_cast<double>(pixels.height));
  cairo_fill(c);
  cairo_restore(c);
}

void Chart::clip(const ChartRect& area) {
  cairo_t* c = state_->context.get();
  cairo_save(c);
  cairo_rectangle(c, area.x, area.y, area.width, area.height);
  cairo_clip(c);
}

void Chart::unclip() { cairo_restore(state_->context.get()); }

Result<void> Chart::save(const std::string& path) const {
  const cairo_status_t drawn = cairo_status(state_->context.get());
  if (drawn != CAIRO_STATUS_SUCCESS) {
    return Error{Errc::resource_exhausted,
                 fmt::format("{}: the chart could not be drawn: {}", path, cairo_status_to_string(drawn))};
  }
  const std::string temporary = fmt::format("{}.tmp-{}", path, ::getpid());
  const cairo_status_t written = cairo_surface_write_to_png(state_->surface.get(), temporary.c_str());
  if (written != CAIRO_STATUS_SUCCESS) {
    std::remove(temporary.c_str());
    return Error{Errc::failed_precondition,
                 fmt::format("{} could not be written: {}", path, cairo_status_to_string(written))};
  }
  if (std::rename(temporary.c_str(), path.c_str()) == 0) return {};
  const int why = errno;
  std::remove(temporary.c_str());
  return Error{Errc::failed_precondition, fmt::format("{} could not be written: {}", path, std::strerror(why))};
}

}  // namespace troupe::workers
