#include "tests/lab/space.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "tests/support/program_words.h"

namespace troupe::testing {

namespace {

#ifndef CLONE_NEWTIME
constexpr int CLONE_NEWTIME = 0x80;
#endif
constexpr int kNamespaces = CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWTIME;
constexpr int kReport = 3;  // where a child tells how far it is

std::runtime_error failed(const std::string& what) { return std::runtime_error(what + ": " + std::strerror(errno)); }

void check(bool good, const char* what) {
  if (!good) throw failed(what);
}

void write_text(const char* path, const std::string& text) {
  const FileDescriptor file(::open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0444));
  check(file.is_open(), path);
  check(::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()), path);
}

void say(const std::string& line) {
  [[maybe_unused]] const auto written = ::write(kReport, line.data(), line.size());  // a parent that is gone
}

/// Leaves a child with 0, 1, 2 and the report, and ends it with its parent.
void begin_child(int report) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::dup2(report, kReport) < 0) ::_exit(70);
  ::syscall(SYS_close_range, kReport + 1, ~0u, 0);
}

void mount_own(const SpaceOptions& options) {
  check(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "private mounts");
  check(::mount("proc", "/proc", "proc", 0, nullptr) == 0, "/proc");
  check(::mount("tmpfs", "/dev/shm", "tmpfs", 0, "mode=1777") == 0, "/dev/shm");
  if (!options.boot_id.empty()) {
    const char *file = "/dev/shm/boot_id", *place = "/proc/sys/kernel/random/boot_id";
    write_text(file, options.boot_id + "\n");
    check(::mount(file, place, nullptr, MS_BIND, nullptr) == 0, place);
    ::unlink(file);
  }
  if (!options.preload.empty()) {
    for (const char* folder : {"/dev/shm/.etc", "/dev/shm/.etc/upper", "/dev/shm/.etc/work"}) ::mkdir(folder, 0755);
    write_text("/dev/shm/.etc/upper/ld.so.preload", options.preload + "\n");
    check(::mount("overlay", "/etc", "overlay", 0,
                  "lowerdir=/etc,upperdir=/dev/shm/.etc/upper,workdir=/dev/shm/.etc/work") == 0,
          "overlay over /etc");
  }
  for (const std::string& folder : options.hidden)
    check(::mount("tmpfs", folder.c_str(), "tmpfs", 0, "mode=0700") == 0, folder.c_str());
}

[[noreturn]] void be_init(const SpaceOptions& options) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    mount_own(options);
    check(::sethostname(options.name.data(), options.name.size()) == 0, "sethostname");
    ::signal(SIGCHLD, SIG_IGN);  // those without a parent go without being waited for
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_IGN);
    ::setsid();
    say("ready\n");
  } catch (const std::exception& error) {
    say(std::string("error ") + error.what() + "\n");
    ::_exit(1);
  }
  ::close(kReport);
  for (;;) ::pause();
}

[[noreturn]] void keep(const SpaceOptions& options) {
  try {
    check(::unshare(kNamespaces) == 0, "unshare");
    const auto seconds = std::to_string(options.clock_offset.count());
    write_text("/proc/self/timens_offsets", "monotonic " + seconds + " 0\nboottime " + seconds + " 0\n");
    const pid_t init = ::fork();
    check(init >= 0, "fork");
    if (init == 0) be_init(options);
    say("pid " + std::to_string(init) + "\n");
    ::close(kReport);
    ::waitpid(init, nullptr, 0);
    ::_exit(0);
  } catch (const std::exception& error) {
    say(std::string("error ") + error.what() + "\n");
    ::_exit(1);
  }
}

/// What a child has said: word -> rest of the line; until it has closed its end or `last` was said.
std::map<std::string, std::string> reports(int from, const std::string& last) {
  std::map<std::string, std::string> said;
  std::string text;
  std::array<char, 512> buffer;
  for (;;) {
    const auto size = ::read(from, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(size));
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) said[line.substr(0, line.find(' '))] = line;
    if (said.contains(last) && said.contains("pid")) break;
  }
  return said;
}

std::pair<FileDescriptor, FileDescriptor> make_pipe() {
  int ends[2];
  check(::pipe2(ends, O_CLOEXEC) == 0, "pipe");
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

pid_t pid_of(const std::map<std::string, std::string>& said, const std::string& what) {
  if (const auto error = said.find("error"); error != said.end()) throw std::runtime_error(what + ": " + error->second);
  const auto pid = said.find("pid");
  if (pid == said.end()) throw std::runtime_error(what + " did not start");
  return std::stoi(pid->second.substr(4));
}

/// Starts `words` under a process that waits for it and ends as it does; `space` is a pidfd of a space's init, or -1.
JobProcess start_under(int space, std::vector<std::string> words, const std::string& log, const StartOptions& options) {
  auto variables = variables_with(options.environment);
  auto argv = pointers_to(words), envp = pointers_to(variables);
  FileDescriptor file;
  if (options.output < 0) {
    file.reset(::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644));
    if (!file.is_open()) throw failed(log);
  }
  auto [told, tell] = make_pipe();
  const pid_t waiter = ::fork();
  if (waiter < 0) throw failed("fork");
  if (waiter == 0) {
    const int output = options.output < 0 ? file.get() : options.output;
    ::dup2(output, 1);
    ::dup2(output, 2);
    ::dup2(::open("/dev/null", O_RDONLY), 0);
    if (space >= 0 && ::setns(space, kNamespaces) != 0) {
      ::dprintf(tell.get(), "error setns: %s\n", std::strerror(errno));
      ::_exit(70);
    }
    begin_child(tell.get());
    const pid_t program = ::fork();
    if (program == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::close(kReport);
      ::setsid();
      if (options.terminal) {
        ::dup2(1, 0);
        ::ioctl(0, TIOCSCTTY, 0);
      }
      ::signal(SIGHUP, SIG_DFL);  // under nohup the lab itself ignores SIGHUP, and programs inherit that
      sigset_t none;
      sigemptyset(&none);
      ::sigprocmask(SIG_SETMASK, &none, nullptr);
      if (!options.cwd.empty() && ::chdir(options.cwd.c_str()) != 0) ::_exit(126);
      ::execve(argv[0], argv.data(), envp.data());
      ::_exit(127);
    }
    ::dprintf(kReport, program < 0 ? "error fork\n" : "pid %d\n", program);
    ::close(kReport);
    // An output that this one held too would never be closed.
    for (const int fd : {1, 2}) ::dup2(0, fd);
    int status = 0;
    while (::waitpid(program, &status, 0) < 0 && errno == EINTR) {
    }
    ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
  tell.reset();
  const pid_t program = pid_of(reports(told.get(), "pid"), words.front());
  return JobProcess(waiter, program, log);
}

bool has_namespaces_of(const std::string& process, const std::string& wanted) {
  std::error_code gone;
  return std::filesystem::read_symlink("/proc/" + process + "/ns/pid", gone).string() == wanted;
}

void set_up_device(const char* name, std::uint32_t address) {
  const FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  check(socket.is_open(), "socket");
  ifreq request{};
  std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  if (address != 0) {
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(address);
    std::memcpy(&request.ifr_addr, &own, sizeof own);
    check(::ioctl(socket.get(), SIOCSIFADDR, &request) == 0, "SIOCSIFADDR");
    own.sin_addr.s_addr = htonl(0xFFFFFF00);
    std::memcpy(&request.ifr_netmask, &own, sizeof own);
    check(::ioctl(socket.get(), SIOCSIFNETMASK, &request) == 0, "SIOCSIFNETMASK");
  }
  check(::ioctl(socket.get(), SIOCGIFFLAGS, &request) == 0, "SIOCGIFFLAGS");
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP | IFF_RUNNING);
  check(::ioctl(socket.get(), SIOCSIFFLAGS, &request) == 0, "SIOCSIFFLAGS");
}

std::string why_no_spaces() {
  if (!FileDescriptor(::open("/dev/net/tun", O_RDWR | O_CLOEXEC)).is_open())
    return std::string("/dev/net/tun cannot be opened: ") + std::strerror(errno);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::unshare(kNamespaces) == 0 ? 0 : errno);
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return "fork fails";
  if (WEXITSTATUS(status) != 0)
    return std::string("no new namespaces (wants CAP_SYS_ADMIN): ") + std::strerror(WEXITSTATUS(status));
  return {};
}

}  // namespace

std::string Space::missing() {
  std::string why = why_no_spaces();
  if (!why.empty() && std::getenv("TROUPE_WANT_LAB") != nullptr)
    throw std::runtime_error("TROUPE_WANT_LAB is set, and no machine of the lab can be made: " + why);
  return why;
}

Space::Space(SpaceOptions options) : options_(std::move(options)) {
  auto [told, tell] = make_pipe();
  keeper_ = ::fork();
  if (keeper_ < 0) throw failed("fork");
  if (keeper_ == 0) {
    begin_child(tell.get());
    keep(options_);
  }
  tell.reset();
  const auto said = reports(told.get(), "ready");
  try {
    init_ = pid_of(said, "space " + options_.name);
    if (!said.contains("ready")) throw std::runtime_error("space " + options_.name + " did not get ready");
  } catch (const std::exception&) {
    kill();
    throw;
  }
}

Space::~Space() { kill(); }

void Space::kill() {
  if (init_ > 0) ::kill(init_, SIGKILL);
  if (init_ <= 0 && keeper_ > 0) ::kill(keeper_, SIGKILL);
  // The first process of a namespace is gone when all the others are.
  if (keeper_ > 0) ::waitpid(keeper_, nullptr, 0);
  keeper_ = init_ = -1;
}

void Space::in_network(const std::function<void()>& work) const {
  const std::string path = "/proc/" + std::to_string(init_) + "/ns/net";
  std::exception_ptr error;
  std::thread([&] {
    try {
      const FileDescriptor network(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
      check(network.is_open() && ::setns(network.get(), CLONE_NEWNET) == 0, path.c_str());
      work();
    } catch (const std::exception&) {
      error = std::current_exception();
    }
  }).join();
  if (error) std::rethrow_exception(error);
}

FileDescriptor Space::tun(std::uint32_t address) const {
  FileDescriptor device;
  in_network([&] {
    device.reset(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
    check(device.is_open(), "/dev/net/tun");
    ifreq request{};
    std::strncpy(request.ifr_name, "lab0", IFNAMSIZ - 1);
    request.ifr_flags = IFF_TUN | IFF_NO_PI;
    check(::ioctl(device.get(), TUNSETIFF, &request) == 0, "TUNSETIFF");
    set_up_device("lab0", address);
    set_up_device("lo", 0);
  });
  return device;
}

JobProcess Space::start(std::vector<std::string> words, const std::string& log, const StartOptions& options) const {
  const FileDescriptor pidfd(static_cast<int>(::syscall(SYS_pidfd_open, init_, 0)));
  if (!pidfd.is_open()) throw failed("space " + options_.name + " is off");
  return start_under(pidfd.get(), std::move(words), log, options);
}

JobProcess start_program(std::vector<std::string> words, const std::string& log, const StartOptions& options) {
  return start_under(-1, std::move(words), log, options);
}

std::vector<pid_t> Space::processes() const {
  std::vector<pid_t> found;
  std::error_code gone;  // processes end while the folder is read
  const auto own = std::filesystem::read_symlink("/proc/" + std::to_string(init_) + "/ns/pid", gone).string();
  if (own.empty()) return found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos || !has_namespaces_of(name, own)) continue;
    if (std::stoi(name) != init_ && JobProcess::is_running(std::stoi(name))) found.push_back(std::stoi(name));
  }
  return found;
}

std::vector<std::string> Space::sockets() const {
  std::vector<std::string> found;
  const std::string folder = "/proc/" + std::to_string(init_) + "/net/";
  std::istringstream tcp(text_of(folder + "tcp"));
  std::string line;
  std::getline(tcp, line);
  while (std::getline(tcp, line)) {
    std::istringstream words(line);
    std::string slot, local, remote, state;
    words >> slot >> local >> remote >> state;
    if (state == "01" || state == "0A") found.push_back("tcp " + local + " " + remote + " state " + state);
  }
  std::istringstream paths(text_of(folder + "unix"));
  std::getline(paths, line);
  while (std::getline(paths, line)) {
    if (const auto at = line.find('/'); at != std::string::npos) found.push_back("unix " + line.substr(at));
  }
  return found;
}

}  // namespace troupe::testing
