#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "image/video_frame.h"

namespace troupe::workers {

/// One held-out clip: what happened beside what the model predicted.
struct PredictionSheet {
  /// Such as "step 2,000, episode 7".
  std::string title{};
  /// The instruction.
  std::string caption{};
  /// Valid during the call.
  std::vector<Rgb8View> true_frames{};
  /// As many, of the same size.
  std::vector<Rgb8View> predicted_frames{};
  /// One per frame, or empty: numbered from 0.
  std::vector<std::string> frame_labels{};
  /// One per dimension.
  std::vector<std::string> action_names{};
  std::int64_t action_steps = 0;
  /// Shapes: (action_steps, action_names), row major, in the dataset's units.
  std::vector<float> true_actions{}, predicted_actions{};
};

/// Draws a row of true frames, under it the predicted ones with each one's peak signal-to-noise ratio, and one panel
/// per action dimension with both curves and their mean absolute error. At most ten frames, evenly spaced, first and
/// last included.
/// Errors: invalid_argument for sizes that do not match or an empty sheet; failed_precondition when `path` cannot be
///         written.
Result<void> draw_prediction(const std::string& path, const PredictionSheet& sheet);

/// 10 log10(255^2 / mean squared error) in dB; infinite for equal images. Both must have one size.
double peak_signal_to_noise(const Rgb8View& a, const Rgb8View& b);

}  // namespace troupe::workers
