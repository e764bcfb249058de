#include "app/exit_code.h"

#include <fmt/format.h>

#include <cstdio>

namespace troupe::app {

int complain(const Error& error, int code) {
  fmt::print(stderr, "error: {}\n", error.message());
  return code;
}

}  // namespace troupe::app
