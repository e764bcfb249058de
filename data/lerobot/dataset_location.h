#pragma once

#include <string>

#include "base/result.h"

namespace troupe::data {

/// The folder of a dataset that is given as a folder or as `owner/name`. Looked at in this order:
///   the folder itself;
///   $HF_LEROBOT_HOME/owner/name;
///   snapshots of $HF_LEROBOT_HOME/hub/datasets--owner--name, then of $HF_HUB_CACHE/datasets--owner--name: the one that
///   refs/main names, else the newest.
/// HF_LEROBOT_HOME defaults to $HF_HOME/lerobot, HF_HUB_CACHE to $HF_HOME/hub, HF_HOME to
/// $XDG_CACHE_HOME/huggingface, XDG_CACHE_HOME to ~/.cache. Nothing is downloaded.
/// Errors: not_found, naming every place.
Result<std::string> find_dataset(const std::string& path_or_repo_id);

}  // namespace troupe::data
