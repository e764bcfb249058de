#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "image/image_chain.h"
#include "workers/inference/policy/policy.h"
#include "workers/inference/policy/policy_spec.h"

namespace troupe::workers {

/// An observation as the network wants it.
struct PreparedObservation {
  /// Frames of each view, one of frames_per_call.
  std::int64_t frames = 0;
  /// u8 (frames, canvas height, canvas width, 3).
  std::vector<std::uint8_t> canvases;
  /// (states_per_block, max_state_dim): normalised, keys in order, zero padded.
  std::vector<float> state;
  /// The newest row of each state key as it was given, for relative actions.
  std::map<std::string, std::vector<float>> newest;
};

/// From what a robot shows to canvases and a padded state: the evaluation's image chain (centre crop, resize, no
/// jitter) and the statistics of the checkpoint. Reuses its buffers; not thread-safe.
class ObservationReader {
 public:
  /// `frames_per_call`: how many frames a call may bring. Errors: invalid_argument for a layout that does not take the
  /// views.
  static Result<ObservationReader> make(const PolicySpec& spec, std::vector<std::int64_t> frames_per_call);

  std::int64_t canvas_height() const { return chain_.canvas_height(); }
  std::int64_t canvas_width() const { return chain_.canvas_width(); }

  /// Views are u8 [H, W, 3] or [T, H, W, 3] with one T; sizes may differ from view to view. State vectors are f32 or
  /// f64 [width] or [rows, width], of which the newest states_per_block rows count (the oldest is repeated where there
  /// are fewer). Errors: invalid_argument naming the key that is missing, unknown, misshapen or not finite.
  Result<PreparedObservation> read(const Observation& observation);

 private:
  ObservationReader(const PolicySpec& spec, std::vector<std::int64_t> frames_per_call, ImageChain chain);
  Result<void> read_images(const Observation& observation, PreparedObservation& out);
  Result<void> read_state(const Observation& observation, PreparedObservation& out) const;

  ImageConfig image_;
  std::vector<std::string> views_;
  std::vector<PolicyKey> state_keys_;
  std::vector<Normalizer<float>> normalizers_;
  std::int64_t state_rows_, state_stride_;
  std::vector<std::int64_t> frames_per_call_;
  ImageChain chain_;
};

}  // namespace troupe::workers
