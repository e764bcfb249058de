#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/enum_names.h"

namespace troupe::base {

/// What the caller should do about a failure: retry, wait, mend or give up. Messages are for people;
/// programs look at the code alone.
/// Codes start at 1 because CAF reads 0 as success.
enum class Errc : std::uint8_t {
  /// The input is wrong: mend it.
  invalid_argument = 1,
  /// The named thing does not exist.
  not_found,
  /// Do not retry until someone changes the state.
  failed_precondition,
  /// Back off: full, over budget, out of memory or disk.
  resource_exhausted,
  /// A named wait ran out.
  deadline_exceeded,
  /// Retry this call.
  unavailable,
  /// Redo the whole step.
  aborted,
  /// Stored bytes are damaged or missing.
  data_loss,
  /// Someone asked for it.
  cancelled,
  /// Our own defect.
  internal,
};

constexpr auto enum_names(Errc) {
  return std::array{"",
                    "invalid_argument",
                    "not_found",
                    "failed_precondition",
                    "resource_exhausted",
                    "deadline_exceeded",
                    "unavailable",
                    "aborted",
                    "data_loss",
                    "cancelled",
                    "internal"};
}

/// A failure: a code and a sentence that says what was found, what was wanted and where to change it.
class Error {
 public:
  Error(Errc code, std::string message) : code_(code), message_(std::move(message)) {}

  /// The message is one line without a full stop at its end, in the user's words, and names the file, key or actor.
  Errc code() const noexcept { return code_; }
  const std::string& message() const noexcept { return message_; }

  /// The same failure with "context: " in front of its message. Used where a caller knows the file, key or actor.
  /// Called once a layer, so that the message reads from the outside in: "job.yaml: data.sets[0]: data/x: not found".
  Error with(std::string_view context) const { return {code_, std::string(context) + ": " + message_}; }

  /// "not_found: data/x.mp4 does not exist"
  /// For logs; users are shown message() alone.
  std::string to_string() const;

 private:
  Errc code_;
  std::string message_;
};

/// An Error of what the caller can mend: a message that names the value, what was expected and how to mend it.
inline Error invalid_argument(std::string message) { return {Errc::invalid_argument, std::move(message)}; }

/// Either a value or an Error. Reading the absent side is an invariant violation and aborts.
/// Not thread-safe; [[nodiscard]], so that no failure is dropped without a word. bool(result) is true for a value.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit by design
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit by design

  explicit operator bool() const noexcept { return state_.index() == 0; }
  bool has_value() const noexcept { return state_.index() == 0; }

  /// The value, by reference while the Result lives; with an Error inside the process aborts with its text.
  T& value() & { return require(), std::get<0>(state_); }
  const T& value() const& { return require(), std::get<0>(state_); }
  T&& value() && { return require(), std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  /// The Error; aborts when there is a value.
  const Error& error() const {
    TROUPE_CHECK(!has_value(), "error() of a Result that holds a value");
    return std::get<1>(state_);
  }

 private:
  void require() const { TROUPE_CHECK(has_value(), std::get<1>(state_).to_string()); }
  std::variant<T, Error> state_;
};

/// For functions without a value: a default-made Result is success.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit by design

  explicit operator bool() const noexcept { return !error_; }
  bool has_value() const noexcept { return !error_; }
  void value() const { TROUPE_CHECK(!error_, error_->to_string()); }
  const Error& error() const {
    TROUPE_CHECK(error_.has_value(), "error() of a Result that holds no error");
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace troupe::base

/// Returns the Error of `expr` from the enclosing function, if there is one.
/// Works in functions that return Error or any Result. `expr` is evaluated once.
#define TROUPE_TRY(expr)                             \
  do {                                               \
    if (auto&& troupe_try_ = (expr); !troupe_try_) { \
      return troupe_try_.error();                    \
    }                                                \
  } while (false)

/// The next three are parts of TROUPE_ASSIGN.
#define TROUPE_CONCAT_(a, b) a##b
#define TROUPE_CONCAT(a, b) TROUPE_CONCAT_(a, b)
#define TROUPE_ASSIGN_(tmp, lhs, expr) \
  auto tmp = (expr);                   \
  if (!tmp) return tmp.error();        \
  lhs = std::move(tmp).value()

/// `TROUPE_ASSIGN(auto x, f());` binds the value of f() or returns its Error.
/// The value is moved out of the Result. One per line of source: the temporary is named after the line.
#define TROUPE_ASSIGN(lhs, expr) TROUPE_ASSIGN_(TROUPE_CONCAT(troupe_assign_, __LINE__), lhs, expr)
