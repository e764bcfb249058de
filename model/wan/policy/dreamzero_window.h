#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "configs/model_config.h"
#include "model/policy/policy_net.h"
#include "model/wan/policy/dreamzero_observer.h"

namespace troupe::model {

/// Memory of DreamZeroNet with windows of nb > 1 blocks, in a batch behind rl_keys::kMemoryPrefix: what a row's window
/// holds before the row's next call. All but the calls is what frozen networks made of frames, so it depends on no
/// weights that are trained. Shape legend: dreamzero_observer.h.
namespace dreamzero_memory {
inline constexpr char kCalls[] = "calls";             ///< [1], of the window so far; 0: the next call begins a window
inline constexpr char kLatents[] = "latents";         ///< [Cz,1+(nb-1)*nfpb,h,w], clean; zero behind the frames seen
inline constexpr char kClip[] = "clip";               ///< [tokens,image width], of the window's first frame
inline constexpr char kFirstFrame[] = "first_frame";  ///< [4+Cz,1+nb*nfpb,h,w], with concat_first_frame_latent alone
}  // namespace dreamzero_memory

/// Policy calls as blocks of the transformer's windows. N rows; R windows of nb blocks; F = 1 + nb*nfpb.
struct WindowedRows {
  /// Of each row: its window and its block there, 0 to nb-1.
  std::vector<std::int64_t> window, block;
  /// R, and nb. Some windows may hold no row at all, and all numbers of those are zero.
  std::int64_t windows = 0, blocks = 1;
  /// Of each window, by the names of model/wan/batch_keys.h, f32: context [R,L,text width], clip [R,tokens,image
  /// width], clean_latents [R,Cz,F,h,w], zero behind the last row's frames, and first_frame [R,4+Cz,F,h,w].
  Batch seen;
  /// [N,nspb,max_state_dim], of each row.
  at::Tensor state;

  /// i64 [N]: window * nb + block.
  at::Tensor slots() const;
  /// Tensors of rows [N,...] at their blocks: [R,nb,...], zero where there is no row.
  at::Tensor of_blocks(const at::Tensor& rows) const;
};

/// The rule of DreamZero's windows (docs/rl.md#windows): call k of a window shows what closed loop shows there; behind
/// nb calls, and where an episode begins, the next call begins a window with its newest frame alone. Immutable.
class DreamZeroWindow {
 public:
  /// `blocks`: nb, data.window.chunks.
  DreamZeroWindow(const ModelConfig& model, std::int64_t blocks);

  std::int64_t blocks() const { return blocks_; }
  /// Empty with one block: every call is a window.
  const std::vector<MemoryField>& memory() const { return memory_; }
  /// S of place(). Errors: throws c10::Error where they have not the same number of rows each.
  std::int64_t sequences(const Batch& rows, std::int64_t num_rows) const;

  /// N rows of S sequences, row t * S + s, as `observer` sees them. With several blocks `rows` has the memories [S,W]
  /// before each sequence's first row, and may have rl_keys::kBegins; R is a multiple of S, so that few shapes occur.
  /// With one block every row is a window of its own.
  /// Errors: throws c10::Error on a missing tensor or a wrong shape, and what the observer throws.
  WindowedRows place(const Batch& rows, std::int64_t num_rows, const DreamZeroObserver& observer) const;

  /// What rows remember behind their calls, by memory()'s names. `placed`: of sequences of one row.
  std::map<std::string, at::Tensor> remembered(const WindowedRows& placed) const;

 private:
  /// A window that was under way before its sequence's first row, whose number is the sequence's.
  struct Continued {
    std::int64_t window, sequence;
  };
  /// Of a window in front of a block's new ones.
  std::int64_t frames_before(std::int64_t block) const { return block == 0 ? 0 : 1 + (block - 1) * frames_per_block_; }
  const at::Tensor& memory_of(const Batch& rows, const char* name) const;
  /// Fills window, block and windows.
  std::vector<Continued> assign(const Batch& rows, std::int64_t num_rows, WindowedRows& placed) const;
  /// Writes frames and states of some rows, as an observer `made` them.
  void take_frames(const Batch& made, const std::vector<std::int64_t>& of_rows, WindowedRows& placed) const;
  /// Writes what is remembered of windows under way. `made` begins with their rows.
  void go_on(const Batch& rows, const Batch& made, const std::vector<Continued>& continued, WindowedRows& placed) const;

  std::int64_t blocks_, frames_per_block_;
  bool has_first_frame_;
  std::vector<MemoryField> memory_;
  /// Of one row's memory, by name.
  std::map<std::string, std::vector<std::int64_t>> shapes_;
};

}  // namespace troupe::model
