#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "base/result.h"

namespace troupe::base {

/// A whole file mapped read-only: costs address space, no memory. The file must not be truncated while it is mapped
/// (reading the lost part raises SIGBUS). Immutable: any number of threads may read.
class MappedFile {
 public:
  /// Errors: data_loss when it is not a regular file or shorter than `least` bytes; those of file_error.
  /// Maps the file as it is now; growth afterwards is not seen. An empty file is data_loss whatever `least` says.
  static Result<MappedFile> open(const std::string& path, std::size_t least);

  MappedFile(MappedFile&& other) noexcept
      : path_(std::move(other.path_)), map_(std::exchange(other.map_, nullptr)), size_(other.size_) {}
  /// Swaps: the file mapped here before is unmapped when `other` is destroyed.
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  /// As given to open().
  const std::string& path() const { return path_; }
  /// Valid while the object lives, also after a move.
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(map_), size_}; }

 private:
  MappedFile(std::string path, void* map, std::size_t size) : path_(std::move(path)), map_(map), size_(size) {}
  /// Unmapped on destruction; map_ is null after a move.
  std::string path_;
  void* map_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace troupe::base
