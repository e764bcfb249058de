#include "app/bundled_fonts.h"

#include <stdlib.h>

#include <filesystem>

namespace troupe::app {

void use_bundled_fonts() {
  namespace fs = std::filesystem;
  std::error_code absent;
  if (::getenv("FONTCONFIG_FILE") != nullptr || fs::exists("/etc/fonts/fonts.conf", absent)) return;
  const fs::path program = fs::read_symlink("/proc/self/exe", absent);
  const fs::path own = program.parent_path().parent_path() / "share/troupe/fonts/fonts.conf";
  if (fs::exists(own, absent)) ::setenv("FONTCONFIG_FILE", own.c_str(), 1);
}

}  // namespace troupe::app
