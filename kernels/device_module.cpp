#include "kernels/device_module.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace troupe::kernels {
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

Error no_module(const std::string& path) {
  const char* why = ::dlerror();
  return {Errc::failed_precondition,
          fmt::format("the module for GPUs cannot be loaded: {}. It is built where scripts/setup --cuda has been run; "
                      "TROUPE_DEVICE_MODULE names another file",
                      why == nullptr ? path : why)};
}

/// Loaded once; a module is never unloaded, since what it made may outlive its last user here.
Result<void*> load() {
  const std::string path = module_path();
  void* module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) return no_module(path);
  void* entry = ::dlsym(module, kOpenDeviceEntry);
  if (entry == nullptr) return no_module(path);
  return entry;
}

const Result<void*>& loaded_entry() {
  static const Result<void*> loaded = load();
  return loaded;
}

}  // namespace

Result<void> load_device_module() {
  if (!loaded_entry()) return loaded_entry().error();
  return {};
}

Result<ComputeDevice> open_device(int ordinal) {
  TROUPE_TRY(load_device_module());
  Result<ComputeDevice> opened = ComputeDevice();
  reinterpret_cast<OpenDeviceEntry*> (*loaded_entry())(ordinal, &opened);
  return opened;
}

}  // namespace troupe::kernels
