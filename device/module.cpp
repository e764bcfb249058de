#include "device/module.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace troupe::device {
namespace {

constexpr char kModule[] = "libtroupe_cuda.so";

std::string module_path() {
  if (const char* named = std::getenv("TROUPE_DEVICE_MODULE"); named != nullptr && *named != '\0') return named;
  std::error_code ignored;  // without a path the sentence below names the file
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const auto& place : {folder / kModule, folder / "../lib/troupe" / kModule}) {
    if (std::filesystem::exists(place, ignored)) return place.string();
  }
  return (folder / kModule).string();
}

Error no_module(const char* why) {
  return {Errc::failed_precondition,
          fmt::format("the module for GPUs cannot be loaded: {}. It is built where scripts/setup --cuda has been run; "
                      "TROUPE_DEVICE_MODULE names another file",
                      why == nullptr ? module_path() : why)};
}

/// Loaded once; never unloaded, since what it made may outlive its last user here.
Result<void*> load() {
  if (void* module = ::dlopen(module_path().c_str(), RTLD_NOW | RTLD_LOCAL)) return module;
  return no_module(::dlerror());
}

}  // namespace

Result<void*> module_entry(const char* name) {
  static const Result<void*> module = load();
  if (!module) return module;
  if (void* entry = ::dlsym(*module, name)) return entry;
  return no_module(::dlerror());
}

}  // namespace troupe::device
