#include "workers/controller/line_file.h"

#include <utility>

#include "base/log.h"

namespace troupe::workers {

bool LineFile::put(const std::string& line) {
  Result<void> written;
  if (!file_) {
    auto opened = AppendFile::open(path_, AppendFile::Open::resume);
    if (opened) {
      file_.emplace(std::move(*opened));
    } else {
      written = opened.error();
    }
  }
  if (file_) {
    written = file_->append(line + "\n");
    if (written) written = file_->flush();
  }
  if (written) return true;
  if (lost_ == 0) log::error("{}; lines are lost until it can be written again", written.error().message());
  if (file_) file_->abandon();
  file_.reset();
  return false;
}

}  // namespace troupe::workers
