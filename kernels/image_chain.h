#pragma once

#include <cuda_runtime_api.h>

#include "kernels/image_tile.h"

namespace troupe::kernels {

/// Bytes of device scratch that launch_image_chain needs for `tiles` tiles of height x width pixels.
/// Three f32 planes a tile, and per tile one f64 for each block of 256 pixels and one for the sum, each part aligned.
///
std::int64_t image_chain_scratch_bytes(std::int64_t tiles, std::int64_t height, std::int64_t width);

/// The image chain of a whole batch on the GPU: planes to crop, antialiased resize, jitter, truncation, canvas. The
/// arithmetic is that of the CPU chain (image_tile.h); only the mean of the contrast is summed in another order.
///
/// Shapes: `tiles` num_tiles entries in device memory, their pointers and those of `shape` too; `scratch` as above,
///         256-byte aligned. What no tile covers is left as it is: clear such canvases first (CanvasLayout::covered).
/// Stream: enqueues two kernels, and a third between them for the means; never waits. No tile: nothing is enqueued.
/// Errors: cudaGetLastError() after the launches.
/// The caller waits for the stream before it reads a canvas or frees what the tiles point to.
cudaError_t launch_image_chain(const ImageTile* tiles, std::int64_t num_tiles, const ImageTileShape& shape,
                               void* scratch, cudaStream_t stream);

/// Canvases u8 [B, T, H, W, 3] to what the network takes, bf16 [B, 3, T, H, W]: (x / 255 - 0.5) / 0.5, rounded to
/// nearest even. Stream: enqueues one kernel. Errors: cudaGetLastError().
/// `out` holds bf16 bits, batch * 3 * frames * height * width of them.
cudaError_t launch_canvas_to_bf16(const std::uint8_t* canvases, std::int64_t batch, std::int64_t frames,
                                  std::int64_t height, std::int64_t width, std::uint16_t* out, cudaStream_t stream);

}  // namespace troupe::kernels
