#include "workers/node/parent_death.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace troupe {

void die_with_parent() {
  const char* text = std::getenv(kParentPidVariable);
  if (text == nullptr) return;
  constexpr int kInternalError = 70;  // exit codes: control-plane.md 15.5
  char* end = nullptr;
  const long parent = std::strtol(text, &end, 10);
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || *end != '\0' || ::getppid() != parent) ::_exit(kInternalError);
  ::unsetenv(kParentPidVariable);  // it speaks of this process only
}

}  // namespace troupe
