#include "app/machine_cache.h"

#include <fmt/format.h>
#include <torch/headeronly/version.h>

#include <fstream>

#include "base/cache_home.h"
#include "base/durable_file.h"
#include "base/file_io.h"
#include "base/log.h"

namespace troupe::app {

namespace {

using Json = nlohmann::ordered_json;

/// What measurements depend on: the processor as /proc/cpuinfo names it (model and features) and the library.
std::string machine_text() {
  std::ifstream info("/proc/cpuinfo");
  std::string text = fmt::format("LibTorch {}", TORCH_VERSION);
  for (std::string line; std::getline(info, line) && !line.empty();) {
    for (const char* key : {"model name", "model\t", "flags"}) {
      if (line.starts_with(key)) text += fmt::format("; {}", line.substr(line.find(':') + 1));
    }
  }
  return text;
}

}  // namespace

MachineCache::MachineCache(const std::string& name) {
  const std::string home = cache_home();
  if (!home.empty()) folder_ = home + "/troupe", path_ = folder_ + "/" + name;
  const auto text = folder_.empty() ? Result<std::string>(std::string()) : read_file(path_);
  auto kept = text ? Json::parse(*text, nullptr, /*allow_exceptions=*/false) : Json();
  // compared as JSON: a member of another type is another machine
  if (kept.is_object() && kept.contains("machine") && kept["machine"] == Json(machine_text()))
    values_ = std::move(kept);
  else
    values_ = {{"machine", machine_text()}};
}

void MachineCache::keep() const {
  if (folder_.empty()) return;
  auto written = make_folders_durably(folder_);
  if (written) written = write_file_durably(path_, values_.dump(2) + "\n");
  if (!written) log::warn("what was measured on this machine is not kept: {}", written.error().message());
}

}  // namespace troupe::app
