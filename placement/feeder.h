#pragma once

#include <string>
#include <string_view>

#include "configs/job_config.h"

namespace troupe {

/// The role whose actors make a job's samples and feed the learners: `encoder` with data.features.encode encoder, which
/// sends latents and text features, else `decoder`, which sends pictures. A job has the one or the other, never both; what a
/// job says of the one that it does not have is not used (plan warning `feeder:`).
inline std::string feeder_role(const JobConfig& job) {
  return job.data.features.encode == "encoder" ? "encoder" : "decoder";
}

/// True for either role of feeder_role, whatever the job.
inline bool is_feeder(std::string_view role) { return role == "decoder" || role == "encoder"; }

/// is_feeder of the role in an actor's name, such as "encoder/3".
inline bool is_feeder_actor(std::string_view actor) {
  const auto slash = actor.find('/');
  return slash != std::string_view::npos && is_feeder(actor.substr(0, slash));
}

}  // namespace troupe
