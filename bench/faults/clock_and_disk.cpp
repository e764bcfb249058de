// Preloaded into the programs of a lab machine: moves their wall clock and slows their disk, as a file says that
// TROUPE_LAB_CONTROL names. Without it nothing changes.
#include "bench/faults/clock_and_disk.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>

namespace troupe::bench {

namespace {

const volatile ClockAndDisk* control() {
  static const volatile ClockAndDisk* const mapped = [] {
    const char* path = std::getenv("TROUPE_LAB_CONTROL");
    const int file = path ? ::open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return static_cast<const ClockAndDisk*>(nullptr);
    void* memory = ::mmap(nullptr, sizeof(ClockAndDisk), PROT_READ, MAP_SHARED, file, 0);
    ::close(file);
    return memory == MAP_FAILED ? nullptr : static_cast<const ClockAndDisk*>(memory);
  }();
  return mapped;
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

void wait_for_disk() {
  const auto* wanted = control();
  if (!wanted || wanted->sync_milliseconds == 0) return;
  const auto milliseconds = wanted->sync_milliseconds;
  const timespec pause{.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1'000'000};
  ::nanosleep(&pause, nullptr);
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  static const auto real = next<int (*)(clockid_t, timespec*)>("clock_gettime");
  const int result = real(clock, now);
  if (result == 0 && clock == CLOCK_REALTIME && control()) now->tv_sec += control()->wall_seconds;
  return result;
}

extern "C" int gettimeofday(timeval* now, void* zone) noexcept {
  static const auto real = next<int (*)(timeval*, void*)>("gettimeofday");
  const int result = real(now, zone);
  if (result == 0 && control()) now->tv_sec += control()->wall_seconds;
  return result;
}

extern "C" time_t time(time_t* now) noexcept {
  timespec own{};
  clock_gettime(CLOCK_REALTIME, &own);
  if (now) *now = own.tv_sec;
  return own.tv_sec;
}

extern "C" int fsync(int file) {
  static const auto real = next<int (*)(int)>("fsync");
  wait_for_disk();
  return real(file);
}

extern "C" int fdatasync(int file) {
  static const auto real = next<int (*)(int)>("fdatasync");
  wait_for_disk();
  return real(file);
}

}  // namespace troupe::bench
