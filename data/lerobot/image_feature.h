#pragma once

#include <string>
#include <string_view>

namespace troupe::data {

// Names of camera features in LeRobot datasets: camera "front" is the feature "observation.images.front".

inline constexpr std::string_view kImageFeaturePrefix = "observation.images.";

inline std::string image_feature(std::string_view camera) { return std::string(kImageFeaturePrefix) += camera; }

/// The camera of a feature; a name without the prefix stays whole.
inline std::string camera_of_feature(std::string_view feature) {
  const bool is_prefixed = feature.starts_with(kImageFeaturePrefix) && feature.size() > kImageFeaturePrefix.size();
  return std::string(is_prefixed ? feature.substr(kImageFeaturePrefix.size()) : feature);
}

}  // namespace troupe::data
