#include "image/yuv_to_rgb.h"

#include <algorithm>
#include <vector>

#include "base/simd.h"

namespace troupe::image {

namespace {

struct Coefficients {
  std::int16_t luma_offset, cy, crv, cgu, cgv, cbu;
};

// Fixed point with 13 fractional bits, rounded half up from swscale's 16-bit tables; full range scales chroma by
// 224/255.
constexpr Coefficients kTables[2][2] = {
    {{128, 9539, 13075, -3209, -6660, 16525}, {0, 8192, 11485, -2819, -5850, 14516}},   // BT.601: limited, full
    {{128, 9539, 14686, -1747, -4366, 17305}, {0, 8192, 12901, -1534, -3835, 15201}}};  // BT.709: limited, full

inline std::int16_t mul_high(std::int16_t a, std::int16_t b) {
  return static_cast<std::int16_t>((static_cast<std::int32_t>(a) * b) >> 16);
}

inline std::uint8_t to_byte(std::int16_t value) {
  return static_cast<std::uint8_t>(std::clamp<std::int16_t>(value, 0, 255));
}

/// One row's chroma terms, each repeated for the two columns that share it.
struct ChromaRow {
  std::vector<std::int16_t> red, green, blue;
  explicit ChromaRow(std::size_t padded) : red(padded), green(padded), blue(padded) {}
};

TROUPE_INLINE void fill_chroma(const std::uint8_t* __restrict__ u, const std::uint8_t* __restrict__ v,
                               std::int64_t count, const Coefficients& c, std::int16_t* __restrict__ red,
                               std::int16_t* __restrict__ green, std::int16_t* __restrict__ blue) {
  for (std::int64_t x = 0; x < count; ++x) {
    const auto cu = static_cast<std::int16_t>(8 * u[x] - 1024), cv = static_cast<std::int16_t>(8 * v[x] - 1024);
    const std::int16_t r = mul_high(cv, c.crv), b = mul_high(cu, c.cbu);
    const auto g = static_cast<std::int16_t>(mul_high(cu, c.cgu) + mul_high(cv, c.cgv));
    red[2 * x] = red[2 * x + 1] = r;
    green[2 * x] = green[2 * x + 1] = g;
    blue[2 * x] = blue[2 * x + 1] = b;
  }
}

TROUPE_INLINE void add_chroma(const std::uint8_t* __restrict__ luma, const std::int16_t* __restrict__ chroma,
                              std::uint8_t* __restrict__ out, std::int64_t width, const Coefficients& c) {
  for (std::int64_t x = 0; x < width; ++x) {
    const std::int16_t y = mul_high(static_cast<std::int16_t>(8 * luma[x] - c.luma_offset), c.cy);
    out[x] = to_byte(static_cast<std::int16_t>(y + chroma[x]));
  }
}

TROUPE_INLINE void interleave(const std::uint8_t* __restrict__ r, const std::uint8_t* __restrict__ g,
                              const std::uint8_t* __restrict__ b, std::uint8_t* __restrict__ out, std::int64_t width) {
  for (std::int64_t x = 0; x < width; ++x) {
    out[3 * x] = r[x];
    out[3 * x + 1] = g[x];
    out[3 * x + 2] = b[x];
  }
}

}  // namespace

void yuv420_to_rgb(const Yuv420View& frame, std::uint8_t* rgb, std::ptrdiff_t stride) {
  if (frame.width <= 0 || frame.height <= 0) return;
  const Coefficients& c = kTables[frame.matrix == ColorMatrix::bt709][frame.full_range];
  const std::int64_t width = frame.width, chroma_width = (width + 1) / 2;
  ChromaRow chroma(static_cast<std::size_t>(2 * chroma_width));
  std::vector<std::uint8_t> planes(static_cast<std::size_t>(3 * width));
  std::uint8_t *red = planes.data(), *green = red + width, *blue = green + width;

  with_best_isa([&]() TROUPE_LAMBDA {
    for (std::int64_t row = 0; row < frame.height; ++row) {
      if (row % 2 == 0)
        fill_chroma(frame.u + row / 2 * frame.u_stride, frame.v + row / 2 * frame.v_stride, chroma_width, c,
                    chroma.red.data(), chroma.green.data(), chroma.blue.data());
      const std::uint8_t* luma = frame.y + row * frame.y_stride;
      add_chroma(luma, chroma.red.data(), red, width, c);
      add_chroma(luma, chroma.green.data(), green, width, c);
      add_chroma(luma, chroma.blue.data(), blue, width, c);
      interleave(red, green, blue, rgb + row * stride, width);
    }
  });
}

void rgb_to_yuv420(const Rgb8View& rgb, std::uint8_t* y, std::ptrdiff_t y_stride, std::uint8_t* u,
                   std::ptrdiff_t u_stride, std::uint8_t* v, std::ptrdiff_t v_stride) {
  // BT.601 limited range with 16 fractional bits, rounded to nearest; the sums of a block's four pixels carry two
  // bits more
  constexpr std::int32_t kHalf = 1 << 15, kQuarterHalf = 1 << 17;
  for (std::int64_t row = 0; row < rgb.height; ++row) {
    const std::uint8_t* p = rgb.row(row);
    for (std::int64_t x = 0; x < rgb.width; ++x, p += 3) {
      y[row * y_stride + x] =
          static_cast<std::uint8_t>((16829 * p[0] + 33039 * p[1] + 6416 * p[2] + (16 << 16) + kHalf) >> 16);
    }
  }
  for (std::int64_t row = 0; row < rgb.height / 2; ++row) {
    const std::uint8_t *a = rgb.row(2 * row), *b = rgb.row(2 * row + 1);
    for (std::int64_t x = 0; x < rgb.width / 2; ++x, a += 6, b += 6) {
      const std::int32_t red = a[0] + a[3] + b[0] + b[3], green = a[1] + a[4] + b[1] + b[4],
                         blue = a[2] + a[5] + b[2] + b[5];
      const std::int32_t cb = -9714 * red - 19070 * green + 28784 * blue + (128 << 18) + kQuarterHalf;
      const std::int32_t cr = 28784 * red - 24103 * green - 4681 * blue + (128 << 18) + kQuarterHalf;
      u[row * u_stride + x] = static_cast<std::uint8_t>(cb >> 18);
      v[row * v_stride + x] = static_cast<std::uint8_t>(cr >> 18);
    }
  }
}

}  // namespace troupe::image
