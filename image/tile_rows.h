#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "image/pixel.h"

namespace troupe::image {

/// Which source columns make a group of `lanes` neighbouring output columns: for tap k, output lane i of group g is
/// source[base[g] + k + offset[g * lanes + i]] * weight[(g * taps + k) * lanes + i]. Taps that an output does not
/// have weigh 0.
struct ColumnPlan {
  /// Outputs of one group (a vector's floats), number of groups, and taps of the output that has most.
  std::int64_t lanes = 1, groups = 0, taps = 0;
  /// Largest offset inside a group: how far a vector's loads spread.
  std::int64_t span = 0;
  /// One base per group, lanes offsets per group, taps * lanes weights per group.
  std::vector<std::int32_t> base, offset;
  std::vector<float> weight;

  /// Antialiased bilinear columns from `in` to `out` pixels (resize.h).
  ColumnPlan(std::int64_t in, std::int64_t out, std::int64_t lanes);
  /// Floats that a source row must have, so that no load leaves it; those past the pixels must be finite.
  std::int64_t source_floats(std::int64_t in) const { return in + taps + 2 * lanes; }
};

/// Three planes of one row of pixels, `stride` floats apart. A view; values in [0, 1].
struct PlaneRow {
  float* red = nullptr;
  std::int64_t stride = 0;
  /// First values of the other two planes.
  float* green() const { return red + stride; }
  float* blue() const { return red + 2 * stride; }
};

/// Chroma terms of one row of 2x2 blocks, each written for both of its columns.
/// What they add to the luma term of each channel.
struct ChromaTerms {
  std::vector<std::int32_t> red, green, blue;
};

/// The loops over the pixels of one row that the image chain is made of, compiled for one instruction set. All sets
/// give the same bits: every operation but fused() rounds by itself, and fused() rounds once, in hardware or emulated.
struct TileRows {
  /// "plain", "avx2" or "avx512": for logs and benchmarks.
  const char* name;
  /// Floats of one vector: what ColumnPlan is made for.
  std::int64_t lanes;

  /// `blocks` chroma samples to terms of 2 * blocks columns.
  void (*chroma)(const std::uint8_t* u, const std::uint8_t* v, std::int64_t blocks, const YuvCoefficients& c,
                 ChromaTerms& out);
  /// Luma of `width` columns and the chroma terms from `skip` on, to values in [0, 1].
  void (*from_yuv)(const std::uint8_t* luma, const ChromaTerms& chroma, std::int64_t skip, std::int64_t width,
                   const YuvCoefficients& c, const PlaneRow& out);
  /// Packed RGB to values in [0, 1].
  void (*from_rgb)(const std::uint8_t* rgb, std::int64_t width, const PlaneRow& out);
  /// Columns of one row; writes groups * lanes values of each plane.
  void (*narrow)(const PlaneRow& source, const ColumnPlan& plan, const PlaneRow& out);
  /// out[i] = sum of rows[k][i] * weights[k], k ascending, over `count` floats of `taps` rows; the first product is
  /// rounded, each further one is fused.
  void (*mix)(const float* const* rows, const float* weights, std::int64_t taps, std::int64_t count, float* out);
  /// One operation of the jitter, in place, over `width` pixels. `code` is a ColorJitter::Operation; contrast adds
  /// `contrast_add` = mean(gray) * (1 - c) to every value, the other operations ignore it.
  void (*jitter)(const JitterFactors& factors, int code, float contrast_add, std::int64_t width, const PlaneRow& row);
  /// Adds the gray of pixel x to sums[x % 8]: wide enough for a vector unit, and the same bits with any.
  void (*gray)(const PlaneRow& row, std::int64_t width, double* sums);
  /// Truncated bytes, packed, each pixel written `repeat` times. `pixels` is scratch of `width` words.
  void (*pack)(const PlaneRow& row, std::int64_t width, std::int64_t repeat, std::uint32_t* pixels, std::uint8_t* out);
};

/// The instruction sets that this machine can run, the fastest first; never empty. Valid for the process's life.
std::span<const TileRows* const> tile_rows();

}  // namespace troupe::image
