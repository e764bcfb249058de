#pragma once

#include <fmt/format.h>

#include <exception>
#include <string>
#include <string_view>

#include "comm/control/message_codec.h"

namespace troupe::actors {

/// Runs a handler of a shell. Returns an empty text, or `what` with the text of the exception that the handler threw,
/// for the shell to end its actor with.
template <class Handler>
std::string failure_of(std::string_view what, Handler&& handler) {
  try {
    handler();
    return {};
  } catch (const std::exception& e) {
    return fmt::format("{}: {}", what, e.what());
  } catch (...) {
    return fmt::format("{}: an exception that is no std::exception", what);
  }
}

/// "failed while handling group_plan", the `what` of a control message's handler.
inline std::string failed_handling(const Message& message) {
  return fmt::format("failed while handling {}", name_of(type_of(message)));
}

}  // namespace troupe::actors
