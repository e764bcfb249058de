#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace troupe::model {

/// Working memory that calls borrow and hand back, so that it outlives them without belonging to a thread. T has
/// rows(): a borrower gets one for its number of rows. At most 16 spares are kept. Thread-safe; the pool must
/// outlive its loans.
template <class T>
class SparePool {
 public:
  /// A spare for `rows`, or make() when there is none; it comes back when the loan is destroyed.
  template <class Make>
  auto borrow(std::int64_t rows, Make make) {
    std::unique_ptr<T> item = take(rows);
    if (!item) item = make();
    const auto give_back = [this](T* spare) { put(std::unique_ptr<T>(spare)); };
    return std::unique_ptr<T, decltype(give_back)>(item.release(), give_back);
  }

 private:
  static constexpr std::size_t kSpares = 16;  ///< more are freed, the oldest first

  std::unique_ptr<T> take(std::int64_t rows) {
    const std::lock_guard lock(mutex_);
    for (auto spare = spares_.rbegin(); spare != spares_.rend(); ++spare) {
      if ((*spare)->rows() != rows) continue;
      auto item = std::move(*spare);
      spares_.erase(std::next(spare).base());
      return item;
    }
    return nullptr;
  }
  void put(std::unique_ptr<T> item) {
    const std::lock_guard lock(mutex_);
    if (spares_.size() == kSpares) spares_.erase(spares_.begin());
    spares_.push_back(std::move(item));
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<T>> spares_;
};

}  // namespace troupe::model
