#include "base/leave.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "base/log.h"

namespace troupe::base {

void leave(int code) {
#ifndef NDEBUG
  std::exit(code);
#else
  log::flush();
  std::cout.flush();
  std::fflush(nullptr);
  ::_exit(code);
#endif
}

}  // namespace troupe::base
