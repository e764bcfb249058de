#include "data/lerobot/json_lines.h"

#include <fmt/format.h>

#include <fstream>
#include <memory>

#include "data/lerobot/file_checks.h"
#include "data/lerobot/json_text.h"

namespace troupe::data {

Result<void> each_json_line(const std::string& path, const std::function<Result<void>(const JsonLine&)>& take) {
  TROUPE_ASSIGN([[maybe_unused]] const std::int64_t size, require_regular_file(path));
  std::ifstream in(path, std::ios::binary);
  const auto buffer = std::make_unique_for_overwrite<char[]>(kMostJsonBytes);
  std::int64_t offset = 0;
  for (std::int64_t number = 1; in.getline(buffer.get(), kMostJsonBytes); ++number) {
    const std::int64_t bytes = in.gcount();  // the last line may lack its end
    const JsonLine line{{buffer.get(), static_cast<std::size_t>(bytes) - (in.eof() ? 0 : 1)}, number, offset};
    offset += bytes;
    if (line.text.find_first_not_of(" \t\r") == line.text.npos) continue;
    const std::string where = fmt::format("{} line {}", path, number);
    try {
      if (const auto taken = take(line); !taken) return taken.error().with(where);
    } catch (const nlohmann::json::exception& e) {
      return invalid_argument(fmt::format("{}: {}", where, e.what()));
    }
  }
  if (in.eof()) return {};
  if (in.bad()) return Error{Errc::data_loss, fmt::format("{} cannot be read to its end", path)};
  return Error{Errc::data_loss,
               fmt::format("{}: a line behind byte {} has more than {} bytes", path, offset, kMostJsonBytes)};
}

}  // namespace troupe::data
