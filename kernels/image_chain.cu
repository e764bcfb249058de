// Image chain: one thread a pixel of a tile. First kernel: crop, resize and what the jitter does before its contrast,
// into float planes, with the gray of each block summed in double; second: the means; third: the rest and the canvas.
// A DROID sample reads 8.6 MB and writes 22.3 MB of canvas plus 67 MB of scratch planes twice: bound by memory, tens
// of microseconds on a GPU of 2-4 TB/s. Compiled with --fmad=false: every product and sum rounds as on the CPU.
#include "kernels/image_chain.h"

namespace troupe::kernels {

namespace {

constexpr int kThreads = 256;

__host__ __device__ std::int64_t blocks_of(std::int64_t pixels) { return (pixels + kThreads - 1) / kThreads; }

struct Scratch {
  float* planes;     // [tiles, 3, height * width]
  double* partial;   // [tiles, blocks]
  double* gray_sum;  // [tiles]
};

__host__ __device__ std::int64_t aligned(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }

Scratch split(void* scratch, std::int64_t tiles, std::int64_t pixels) {
  auto* at = static_cast<char*>(scratch);
  Scratch s{};
  s.planes = reinterpret_cast<float*>(at);
  at += aligned(tiles * 3 * pixels * static_cast<std::int64_t>(sizeof(float)));
  s.partial = reinterpret_cast<double*>(at);
  at += aligned(tiles * blocks_of(pixels) * static_cast<std::int64_t>(sizeof(double)));
  s.gray_sum = reinterpret_cast<double*>(at);
  return s;
}

__global__ void resize_tiles(const ImageTile* tiles, ImageTileShape shape, Scratch scratch) {
  const std::int64_t pixels = std::int64_t{shape.height} * shape.width;
  const std::int64_t tile_index = blockIdx.y;
  const std::int64_t pixel = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const ImageTile tile = tiles[tile_index];
  const std::int32_t contrast_at = contrast_place(tile.jitter);
  double gray = 0;
  if (pixel < pixels) {
    float rgb[3] = {};
    resized_pixel(tile, shape, static_cast<std::int32_t>(pixel / shape.width),
                  static_cast<std::int32_t>(pixel % shape.width), rgb);
    jitter_range(tile.jitter, 0, contrast_at, 0.0f, rgb);
    float* planes = scratch.planes + tile_index * 3 * pixels + pixel;
    for (int c = 0; c < 3; ++c) planes[c * pixels] = rgb[c];
    gray = static_cast<double>(gray_of(rgb[0], rgb[1], rgb[2]));
  }
  if (contrast_at == tile.jitter.operations) return;  // the same for the whole block

  // a tree in a fixed order, so that two runs give the same bits
  __shared__ double sums[kThreads];
  sums[threadIdx.x] = gray;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) scratch.partial[tile_index * gridDim.x + blockIdx.x] = sums[0];
}

/// One block a tile adds its partial sums, each thread a strided part in ascending order.
__global__ void sum_gray(const ImageTile* tiles, std::int64_t blocks, Scratch scratch) {
  const std::int64_t tile_index = blockIdx.x;
  if (contrast_place(tiles[tile_index].jitter) == tiles[tile_index].jitter.operations) return;
  __shared__ double sums[kThreads];
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < blocks; i += kThreads) sum += scratch.partial[tile_index * blocks + i];
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) scratch.gray_sum[tile_index] = sums[0];
}

__global__ void finish_tiles(const ImageTile* tiles, ImageTileShape shape, Scratch scratch) {
  const std::int64_t pixels = std::int64_t{shape.height} * shape.width;
  const std::int64_t tile_index = blockIdx.y;
  const std::int64_t pixel = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (pixel >= pixels) return;
  const ImageTile tile = tiles[tile_index];
  const std::int32_t contrast_at = contrast_place(tile.jitter);
  const float* planes = scratch.planes + tile_index * 3 * pixels + pixel;
  float rgb[3];
  for (int c = 0; c < 3; ++c) rgb[c] = planes[c * pixels];
  if (contrast_at < tile.jitter.operations) {
    const float add = contrast_term(tile.jitter, scratch.gray_sum[tile_index], pixels);
    jitter_range(tile.jitter, contrast_at, tile.jitter.operations, add, rgb);
  }
  place_pixel(tile, shape, static_cast<std::int32_t>(pixel / shape.width),
              static_cast<std::int32_t>(pixel % shape.width), rgb);
}

__device__ std::uint16_t to_bf16(float x) {
  const std::uint32_t bits = __float_as_uint(x);
  return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

__global__ void normalise_canvas(const std::uint8_t* canvases, std::int64_t pixels_per_sample, std::int64_t samples,
                                 std::uint16_t* out) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= pixels_per_sample * samples) return;
  const std::int64_t sample = i / pixels_per_sample, pixel = i % pixels_per_sample;
  for (int c = 0; c < 3; ++c) {
    const float unit = unit_of_level(canvases[3 * i + c]);
    out[(sample * 3 + c) * pixels_per_sample + pixel] = to_bf16((unit - 0.5f) / 0.5f);
  }
}

}  // namespace

std::int64_t image_chain_scratch_bytes(std::int64_t tiles, std::int64_t height, std::int64_t width) {
  const std::int64_t pixels = height * width;
  return aligned(tiles * 3 * pixels * static_cast<std::int64_t>(sizeof(float))) +
         aligned(tiles * blocks_of(pixels) * static_cast<std::int64_t>(sizeof(double))) +
         aligned(tiles * static_cast<std::int64_t>(sizeof(double)));
}

cudaError_t launch_image_chain(const ImageTile* tiles, std::int64_t num_tiles, const ImageTileShape& shape,
                               void* scratch, cudaStream_t stream) {
  constexpr std::int64_t kMostTiles = 65535;  // of the grid's second dimension
  if (num_tiles > kMostTiles) return cudaErrorInvalidConfiguration;
  const std::int64_t pixels = std::int64_t{shape.height} * shape.width;
  if (num_tiles <= 0 || pixels <= 0) return cudaSuccess;
  const std::int64_t blocks = blocks_of(pixels);
  const Scratch parts = split(scratch, num_tiles, pixels);
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(num_tiles));
  resize_tiles<<<grid, kThreads, 0, stream>>>(tiles, shape, parts);
  sum_gray<<<static_cast<unsigned>(num_tiles), kThreads, 0, stream>>>(tiles, blocks, parts);
  finish_tiles<<<grid, kThreads, 0, stream>>>(tiles, shape, parts);
  return cudaGetLastError();
}

cudaError_t launch_canvas_to_bf16(const std::uint8_t* canvases, std::int64_t batch, std::int64_t frames,
                                  std::int64_t height, std::int64_t width, std::uint16_t* out, cudaStream_t stream) {
  const std::int64_t pixels = frames * height * width;
  if (batch <= 0 || pixels <= 0) return cudaSuccess;
  normalise_canvas<<<static_cast<unsigned>(blocks_of(batch * pixels)), kThreads, 0, stream>>>(canvases, pixels, batch,
                                                                                              out);
  return cudaGetLastError();
}

}  // namespace troupe::kernels
