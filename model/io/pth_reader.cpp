#include "model/io/pth_reader.h"

#include <fmt/format.h>

#include <cstring>

#include "base/mapped_file.h"
#include "configs/format_error.h"
#include "model/io/pth_state.h"
#include "model/io/zip_directory.h"

namespace troupe::model {
namespace {

constexpr std::string_view kPickleName = "data.pkl";
using Bytes = std::span<const std::byte>;
using Entries = std::map<std::string, ZipEntry, std::less<>>;

Bytes bytes_of(Bytes archive, const ZipEntry& entry) {
  return archive.subspan(static_cast<std::size_t>(entry.offset), static_cast<std::size_t>(entry.size));
}

/// What releases of PyTorch before 1.6 wrote, and later ones on demand: pickles one behind the other, without an
/// archive.
void check_archive(Bytes file) {
  constexpr std::byte kProto{0x80};
  if (file.empty() || file.front() != kProto) return;
  throw FormatError(0,
                    "a bare pickle, as torch.save wrote before version 1.6; save it again with PyTorch: "
                    "torch.save(torch.load(OLD, map_location='cpu', weights_only=True), NEW)");
}

/// The folder inside the archive that holds the pickle and the storages, with its slash.
std::string find_root(const Entries& entries) {
  std::string root;
  bool found = false;
  for (const auto& [name, entry] : entries) {
    const bool here = name == kPickleName || name.ends_with("/" + std::string(kPickleName));
    if (!here) continue;
    if (found) throw FormatError(entry.offset, fmt::format("the archive has a second pickle, '{}'", name));
    root = name.substr(0, name.size() - kPickleName.size());
    found = true;
  }
  if (!found) throw FormatError(0, "the archive has no data.pkl: torch.save did not write it");
  return root;
}

void check_byte_order(Bytes archive, const Entries& entries, const std::string& root) {
  const auto found = entries.find(root + "byteorder");
  if (found == entries.end()) return;
  const auto bytes = bytes_of(archive, found->second);
  const std::string_view order(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (order != "little") throw FormatError(found->second.offset, "the byte order of the file is not little");
}

/// Copies a strided view row-major. `storage` has the whole storage.
void gather(const StoredTensor& tensor, Bytes storage, std::size_t element, std::vector<std::byte>& out) {
  out.resize(static_cast<std::size_t>(tensor.numel) * element);
  const std::size_t dims = tensor.shape.size();
  std::vector<std::int64_t> index(dims, 0);
  std::int64_t at = tensor.first;
  for (std::size_t done = 0; done < out.size(); done += element) {
    std::memcpy(out.data() + done, storage.data() + static_cast<std::size_t>(at) * element, element);
    for (std::size_t d = dims; d-- > 0;) {
      at += tensor.strides[d];
      if (++index[d] < tensor.shape[d]) break;
      at -= tensor.strides[d] * tensor.shape[d];
      index[d] = 0;
    }
  }
}

}  // namespace

struct PthReader::Impl {
  explicit Impl(MappedFile mapped) : file(std::move(mapped)) {}

  struct Placed {
    StoredTensor tensor;
    std::size_t element = 0;  ///< bytes
    Bytes storage;
  };

  MappedFile file;
  std::vector<std::string> names;
  std::map<std::string, Placed, std::less<>> tensors;

  void read() {
    const Bytes archive = file.bytes();
    check_archive(archive);
    Entries entries;
    for (auto& entry : read_zip_directory(archive)) entries.emplace(entry.name, entry);
    const std::string root = find_root(entries);
    check_byte_order(archive, entries, root);
    const ZipEntry& pickle = entries.at(root + std::string(kPickleName));
    for (auto& tensor : state_tensors(run_pickle(bytes_of(archive, pickle), pickle.offset))) {
      place(archive, entries, root, std::move(tensor));
    }
  }

  void place(Bytes archive, const Entries& entries, const std::string& root, StoredTensor tensor) {
    const auto found = entries.find(root + "data/" + tensor.storage);
    if (found == entries.end()) {
      throw FormatError(tensor.offset, fmt::format("tensor '{}' lies in storage '{}', which the archive lacks",
                                                   tensor.name, tensor.storage));
    }
    const auto element = *safetensors_dtype_size(tensor.dtype);
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(tensor.storage_numel, element, &bytes) || bytes != found->second.size) {
      throw FormatError(
          found->second.offset,
          fmt::format("storage '{}' of tensor '{}' has {} bytes; {} elements of {} were written", tensor.storage,
                      tensor.name, found->second.size, tensor.storage_numel, tensor.dtype));
    }
    names.push_back(tensor.name);
    const std::string name = tensor.name;
    tensors.emplace(name,
                    Placed{std::move(tensor), static_cast<std::size_t>(element), bytes_of(archive, found->second)});
  }

  const Placed* find(std::string_view name) const {
    const auto found = tensors.find(name);
    return found == tensors.end() ? nullptr : &found->second;
  }
  Error missing(std::string_view name) const {
    return {Errc::not_found,
            fmt::format("{}: there is no tensor '{}' among its {}", file.path(), name, tensors.size())};
  }
};

PthReader::PthReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PthReader::PthReader(PthReader&&) noexcept = default;
PthReader& PthReader::operator=(PthReader&&) noexcept = default;
PthReader::~PthReader() = default;

Result<PthReader> PthReader::open(const std::string& path) {
  TROUPE_ASSIGN(MappedFile file, MappedFile::open(path, 1));
  auto impl = std::make_unique<Impl>(std::move(file));
  try {
    impl->read();
  } catch (const FormatError& e) {
    return e.in(path);
  }
  return PthReader(std::move(impl));
}

const std::string& PthReader::path() const { return impl_->file.path(); }
const std::vector<std::string>& PthReader::names() const { return impl_->names; }
bool PthReader::contains(std::string_view name) const { return impl_->find(name) != nullptr; }

Result<TensorDeclaration> PthReader::declaration(std::string_view name) const {
  const auto* found = impl_->find(name);
  if (found == nullptr) return impl_->missing(name);
  return TensorDeclaration{found->tensor.name, std::string(found->tensor.dtype), found->tensor.shape};
}

Result<std::span<const std::byte>> PthReader::read(std::string_view name, std::vector<std::byte>& gathered) const {
  const auto* found = impl_->find(name);
  if (found == nullptr) return impl_->missing(name);
  const StoredTensor& tensor = found->tensor;
  if (tensor.contiguous) {
    return found->storage.subspan(static_cast<std::size_t>(tensor.first) * found->element,
                                  static_cast<std::size_t>(tensor.numel) * found->element);
  }
  gather(tensor, found->storage, found->element, gathered);
  return std::span<const std::byte>(gathered);
}

}  // namespace troupe::model
