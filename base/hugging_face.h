#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace troupe::base {

/// Folders of Hugging Face's caches, whether they exist or not; empty: not known, as without HOME.
struct HubFolders {
  /// $HF_HUB_CACHE, default $HF_HOME/hub: models--owner--name, datasets--owner--name.
  std::string hub;
  /// $HF_LEROBOT_HOME, default $HF_HOME/lerobot.
  std::string lerobot;
};
/// From the environment: HF_HOME defaults to $XDG_CACHE_HOME/huggingface, XDG_CACHE_HOME to ~/.cache.
HubFolders hub_folders();

/// owner/name, as Hugging Face allows; not what begins with a folder's usual name, such as weights/ or data/.
bool is_repo_id(std::string_view text);

/// The snapshot of a repository in a cache, HUB/models--owner--name: the one that refs/main names, else the newest, of
/// those that `fits` takes. Empty: none.
std::string find_snapshot(const std::string& repository, const std::function<bool(const std::string&)>& fits);

/// What to say about a model that is in no cache: two lines, the second is the command that downloads owner/name or
/// owner/name/PATH. Empty where the text can only be a path: it is absolute, or its first folder exists.
std::string download_hint(const std::string& path_or_repo_id);

/// A file or folder of weights or of a tokenizer: a path that exists as it is, else owner/name or owner/name/PATH of a
/// model in the cache. Nothing is downloaded. Errors: not_found, with download_hint().
Result<std::string> find_model_files(const std::string& path_or_repo_id);

}  // namespace troupe::base
