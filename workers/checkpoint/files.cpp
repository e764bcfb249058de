#include "workers/checkpoint/files.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <memory>

#include "base/durable_file.h"

namespace troupe::workers {

namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

}  // namespace

Result<std::string> read_text_file(const std::string& path, std::int64_t limit) {
  const File file(std::fopen(path.c_str(), "rbe"), &std::fclose);
  if (!file) return file_error(path, "cannot be opened", errno);
  std::string text;
  char block[65536];
  while (const std::size_t n = std::fread(block, 1, sizeof(block), file.get())) {
    text.append(block, n);
    if (static_cast<std::int64_t>(text.size()) > limit) {
      return Error{Errc::data_loss, fmt::format("{}: larger than the {} bytes allowed", path, limit)};
    }
  }
  if (std::ferror(file.get()) != 0) return file_error(path, "cannot be read", errno);
  return text;
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos;
}

}  // namespace troupe::workers
