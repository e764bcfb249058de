#include "configs/embedded.h"

namespace troupe::configs {

std::optional<EmbeddedFile> find_embedded(const std::string& name) {
  constexpr std::string_view kQuickstart = "quickstart:";
  const std::string wanted =
      name.starts_with(kQuickstart) ? "recipes/quickstart_" + name.substr(kQuickstart.size()) : name;
  for (const EmbeddedFile& file : embedded_files()) {
    const std::string_view bare = file.name.substr(0, file.name.size() - std::string_view(".yaml").size());
    for (const std::string_view form : {file.name, bare}) {
      // an embodiment is part of a job, never one: its bare name finds no job
      const bool bare_name = !file.name.starts_with("embodiments/") && wanted == form.substr(form.find('/') + 1);
      if (wanted == form || bare_name) return file;
    }
  }
  return std::nullopt;
}

std::optional<std::string> short_name(const EmbeddedFile& file) {
  constexpr std::string_view kRecipes = "recipes/", kQuickstart = "quickstart_";
  if (!file.name.starts_with(kRecipes)) return std::nullopt;
  std::string name(file.name.substr(kRecipes.size(), file.name.rfind('.') - kRecipes.size()));
  if (name.starts_with(kQuickstart)) name[kQuickstart.size() - 1] = ':';
  return name;
}

}  // namespace troupe::configs
