// A seccomp filter (classic BPF over seccomp_data): everything is allowed but what a decoder has no use for. A list of
// what is allowed would be stricter and would break with each version of the codec, Arrow and C libraries.
#include "workers/node/syscall_filter.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::workers {

namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t kArchitecture = 0;
#endif

// Younger than the headers at hand.
constexpr int kIoUringSetup = 425, kIoUringEnter = 426, kIoUringRegister = 427, kOpenTree = 428, kMoveMount = 429;
constexpr int kFsopen = 430, kFsconfig = 431, kFsmount = 432, kFspick = 433, kPidfdOpen = 434, kClone3 = 435;
constexpr int kPidfdGetfd = 438, kProcessMadvise = 440, kMountSetattr = 442, kPidfdSendSignal = 424;

/// Refused whatever the arguments.
constexpr std::array kRefused = {
    // other programs and processes
    SYS_execve, SYS_execveat, SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp, kPidfdOpen,
    kPidfdGetfd, kPidfdSendSignal, kProcessMadvise, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_tkill,
    // other views of the system
    SYS_unshare, SYS_setns, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, kOpenTree, kMoveMount, kFsopen,
    kFsconfig, kFsmount, kFspick, kMountSetattr, SYS_open_by_handle_at, SYS_name_to_handle_at,
    // the kernel itself
    SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_reboot, SYS_swapon, SYS_swapoff, SYS_bpf,
    SYS_perf_event_open, SYS_userfaultfd, kIoUringSetup, kIoUringEnter, kIoUringRegister, SYS_keyctl, SYS_add_key,
    SYS_request_key, SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex, SYS_acct, SYS_quotactl,
    SYS_sethostname, SYS_setdomainname, SYS_syslog, SYS_personality, SYS_fanotify_init, SYS_vhangup,
    // being reached from outside
    SYS_listen, SYS_bind, SYS_accept, SYS_accept4
#if defined(__x86_64__)
    ,
    SYS_fork, SYS_vfork, SYS_iopl, SYS_ioperm, SYS_modify_ldt, SYS_uselib, SYS_create_module, SYS_kexec_file_load
#endif
};

constexpr std::uint32_t kNumber = offsetof(seccomp_data, nr);
constexpr std::uint32_t kArch = offsetof(seccomp_data, arch);
/// The lower half of an argument, on the little-endian machines this is built for.
constexpr std::uint32_t argument(std::size_t index) {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + index * sizeof(std::uint64_t));
}

sock_filter load(std::uint32_t offset) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset); }
sock_filter give(std::uint32_t action) { return BPF_STMT(BPF_RET | BPF_K, action); }
sock_filter refuse(int why) { return give(SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(why)); }
/// Goes on with the next statement if the loaded word is `value`, else skips `otherwise` statements.
sock_filter if_equal(std::uint32_t value, std::uint8_t otherwise) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, otherwise);
}

/// The call `number` is refused.
void refuse_call(std::vector<sock_filter>& program, int number, int why) {
  program.push_back(if_equal(static_cast<std::uint32_t>(number), 1));
  program.push_back(refuse(why));
}

/// The call `number` is allowed with one of `values` as its first argument, else refused.
void allow_only(std::vector<sock_filter>& program, int number, const std::vector<std::uint32_t>& values) {
  const auto length = static_cast<std::uint8_t>(2 + 2 * values.size());
  program.push_back(if_equal(static_cast<std::uint32_t>(number), length));
  program.push_back(load(argument(0)));
  for (const std::uint32_t value : values) {
    program.push_back(if_equal(value, 1));
    program.push_back(give(SECCOMP_RET_ALLOW));
  }
  program.push_back(refuse(EPERM));
}

/// Threads may be made, processes not.
void allow_threads_only(std::vector<sock_filter>& program) {
  program.push_back(if_equal(SYS_clone, 4));
  program.push_back(load(argument(0)));
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1));
  program.push_back(give(SECCOMP_RET_ALLOW));
  program.push_back(refuse(EPERM));
}

/// The call `number` is refused with one of `values` as its first argument.
void refuse_values(std::vector<sock_filter>& program, int number, const std::vector<std::uint32_t>& values) {
  const auto length = static_cast<std::uint8_t>(2 + 2 * values.size());
  program.push_back(if_equal(static_cast<std::uint32_t>(number), length));
  program.push_back(load(argument(0)));
  for (const std::uint32_t value : values) {
    program.push_back(if_equal(value, 1));
    program.push_back(refuse(EPERM));
  }
  program.push_back(give(SECCOMP_RET_ALLOW));
}

std::vector<sock_filter> program_for(SandboxSockets sockets) {
  std::vector<sock_filter> program = {load(kArch), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0),
                                      give(SECCOMP_RET_KILL_PROCESS), load(kNumber)};
#if defined(__x86_64__)
  // the calls of x32 have numbers of their own
  constexpr std::uint32_t kX32 = 0x4000'0000;
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kX32, 0, 1));
  program.push_back(refuse(ENOSYS));
#endif
  for (const int number : kRefused) refuse_call(program, number, EPERM);
  refuse_call(program, kClone3, ENOSYS);
  allow_threads_only(program);
  const auto self = static_cast<std::uint32_t>(::getpid());
  allow_only(program, SYS_kill, {self});
  allow_only(program, SYS_tgkill, {self});
  allow_only(program, SYS_prlimit64, {0, self});
  refuse_values(program, SYS_prctl, {PR_SET_DUMPABLE, PR_SET_PTRACER});
  switch (sockets) {
    case SandboxSockets::none:
      refuse_call(program, SYS_socket, EPERM);
      break;
    case SandboxSockets::local:
      allow_only(program, SYS_socket, {AF_UNIX});
      break;
    case SandboxSockets::network:
      allow_only(program, SYS_socket, {AF_UNIX, AF_INET, AF_INET6});
      break;
  }
  program.push_back(give(SECCOMP_RET_ALLOW));
  return program;
}

}  // namespace

bool can_filter_syscalls() {
  std::uint32_t action = SECCOMP_RET_ERRNO;
  return kArchitecture != 0 && ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

int filter_syscalls(SandboxSockets sockets) {
  std::vector<sock_filter> program = program_for(sockets);
  const sock_fprog whole{.len = static_cast<unsigned short>(program.size()), .filter = program.data()};
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &whole) == 0 ? 0 : errno;
}

}  // namespace troupe::workers
