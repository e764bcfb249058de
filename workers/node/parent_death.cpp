#include "workers/node/parent_death.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace troupe::workers {

void die_with_parent() {
  const char* text = std::getenv(kParentPidVariable);
  if (text == nullptr) return;
  constexpr int kInternalError = 70;  // docs/processes.md#end
  char* end = nullptr;
  const long parent = std::strtol(text, &end, 10);
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || *end != '\0' || ::getppid() != parent) ::_exit(kInternalError);
  ::unsetenv(kParentPidVariable);  // it speaks of this process only
}

}  // namespace troupe::workers
