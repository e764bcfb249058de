#include "comm/control/key_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <span>
#include <string_view>

#include "base/durable_file.h"
#include "base/file_io.h"
#include "base/ids.h"
#include "comm/control/guarded_file.h"

namespace troupe::comm {

namespace {

constexpr std::string_view kKeyHeader = "troupe-key v1";
constexpr std::size_t kMaxKeyFile = 4096;

std::string text_of(const KeyFile& key, bool with_secret) {
  const std::string secret = with_secret ? fmt::format("secret: {}\n", key.keys.secret_key) : std::string();
  return fmt::format("{}\nrole: {}\nname: {}\ncreated: {}\npublic: {}\n{}", kKeyHeader, key.role, key.name, key.created,
                     key.keys.public_key, secret);
}

/// A new file with exactly this mode, whatever the umask: whole, or not there, also after a crash or on a full disk.
Result<void> write_new(const std::string& path, const std::string& text, mode_t mode) {
  const std::string temporary = path + ".tmp";
  ::unlink(temporary.c_str());  // of an attempt that ended half-way
  const FileDescriptor file(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode & 0600));
  if (!file.is_open()) return file_error(temporary, "cannot be made", errno);
  Result<void> written = write_all(file.get(), std::as_bytes(std::span(text)), temporary);
  if (written && (::fchmod(file.get(), mode) != 0 || ::fsync(file.get()) != 0))
    written = file_error(temporary, "cannot be kept", errno);
  const int why = written && ::link(temporary.c_str(), path.c_str()) != 0 ? errno : 0;
  ::unlink(temporary.c_str());
  TROUPE_TRY(written);
  if (why == EEXIST)
    return Error{Errc::failed_precondition,
                 fmt::format("{} is there already; a key is never overwritten: choose another name or folder", path)};
  if (why != 0) return file_error(path, "cannot be made", why);
  return {};
}

Result<KeyFile> parse(std::string_view text, const std::string& path, bool with_secret) {
  KeyFile key;
  std::map<std::string_view, std::string*> wanted{
      {"role: ", &key.role}, {"name: ", &key.name}, {"created: ", &key.created}, {"public: ", &key.keys.public_key}};
  if (with_secret) wanted["secret: "] = &key.keys.secret_key;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (number == 1 && line != kKeyHeader)
      return Error{Errc::invalid_argument, fmt::format("{}:1: the first line must be \"{}\"", path, kKeyHeader)};
    if (number == 1) continue;
    const auto field =
        std::find_if(wanted.begin(), wanted.end(), [&](const auto& entry) { return line.starts_with(entry.first); });
    // the line itself may be a secret with a typing error: never print it
    if (field == wanted.end())
      return Error{Errc::invalid_argument, fmt::format("{}:{}: unknown or repeated line", path, number)};
    *field->second = line.substr(field->first.size());
    wanted.erase(field);
  }
  if (!wanted.empty())
    return Error{Errc::invalid_argument, fmt::format("{}: the line \"{}\" is missing", path, wanted.begin()->first)};
  if (!base::is_name(key.name))
    return Error{Errc::invalid_argument, fmt::format("{}: the name must match {}", path, kNamePattern)};
  if (!is_curve_key(key.keys.public_key))
    return Error{Errc::invalid_argument, fmt::format("{}: the public key is not 40 characters of Z85", path)};
  if (!with_secret) return key;
  const auto derived = public_key_of(key.keys.secret_key);
  if (!derived) return derived.error().with(path);
  if (*derived != key.keys.public_key)
    return Error{Errc::invalid_argument, fmt::format("{}: the secret key does not belong to the public key", path)};
  return key;
}

}  // namespace

std::string allow_line(const KeyFile& key) { return fmt::format("{} {} {}", key.keys.public_key, key.role, key.name); }

Result<KeyFile> make_key_files(const std::string& folder, const std::string& role, const std::string& name,
                               const std::string& created) {
  if (!base::is_name(name))
    return Error{Errc::invalid_argument, fmt::format("'{}' is no name of a key; it must match {}", name, kNamePattern)};
  const std::string secret = folder + "/" + name + ".key", open = folder + "/" + name + ".pub";
  struct stat there {};
  if (::lstat(open.c_str(), &there) == 0)
    return Error{Errc::failed_precondition,
                 fmt::format("{} is there already; a key is never overwritten: choose another name or folder", open)};
  KeyFile key{.role = role, .name = name, .created = created, .keys = {}};
  TROUPE_ASSIGN(key.keys, generate_keypair());
  TROUPE_TRY(write_new(secret, text_of(key, /*with_secret=*/true), 0600));
  if (auto written = write_public_key_file(folder, key); !written) {
    ::unlink(secret.c_str());  // half a pair is of no use, and would be in the way of the next attempt
    return written.error();
  }
  TROUPE_TRY(sync_directory(folder));
  return key;
}

Result<void> write_public_key_file(const std::string& folder, const KeyFile& key) {
  return write_new(folder + "/" + key.name + ".pub", text_of(key, /*with_secret=*/false), 0644);
}

Result<KeyFile> read_key_file(const std::string& path) {
  TROUPE_ASSIGN(const std::string text, read_guarded_file(path, "key file", Guard::secret, kMaxKeyFile));
  return parse(text, path, /*with_secret=*/true);
}

Result<KeyFile> read_public_key_file(const std::string& path) {
  TROUPE_ASSIGN(const std::string text, read_guarded_file(path, "public key file", Guard::list, kMaxKeyFile));
  return parse(text, path, /*with_secret=*/false);
}

}  // namespace troupe::comm
