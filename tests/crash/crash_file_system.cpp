#include "tests/crash/crash_file_system.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <stdexcept>
#include <utility>

#include "base/file_io.h"
#include "tests/crash/call_record.h"

namespace troupe::testing {

namespace {

using Record = CrashFileSystem::Record;
using Kind = RecordedCall::Kind;

constexpr std::uint64_t kPage = 4096;

std::atomic<Record*>& active_record() {
  static std::atomic<Record*> record{nullptr};
  return record;
}

/// A file's content as pages; what is beyond a page's end or the length is zero.
struct Content {
  std::map<std::uint64_t, std::string> pages;
  std::uint64_t size = 0;

  void write(std::uint64_t page, const RecordedCall& call) {
    std::string& bytes = pages[page];
    bytes.resize(kPage);
    const std::uint64_t begin = std::max(page * kPage, call.offset);
    const std::uint64_t end = std::min((page + 1) * kPage, call.offset + call.bytes.size());
    bytes.replace(begin - page * kPage, end - begin, call.bytes, begin - call.offset, end - begin);
  }
  void cut(std::uint64_t page, std::uint64_t length) {
    const auto found = pages.find(page);
    if (found == pages.end() || length >= (page + 1) * kPage) return;
    if (length <= page * kPage) {
      pages.erase(found);
    } else {
      found->second.replace(length - page * kPage, std::string::npos, (page + 1) * kPage - length, '\0');
    }
  }
  std::string text() const {
    std::string all(size, '\0');
    for (const auto& [page, bytes] : pages) {
      if (page * kPage < size)
        all.replace(page * kPage, std::min(kPage, size - page * kPage), bytes, 0, std::min(kPage, size - page * kPage));
    }
    return all;
  }
};

using Entries = std::map<std::string, std::size_t>;

/// The disk after some calls: what is durable, and what is not yet.
class Disk {
 public:
  explicit Disk(const Record& record) : record_(record), entries_(record.nodes.size()) {}

  void take(const RecordedCall& call) {
    switch (call.kind) {
      case Kind::write:
      case Kind::truncate:
        pending_data_[call.node].push_back(&call);
        break;
      case Kind::sync:
        sync(call.node);
        break;
      default:
        pending_names_.push_back(&call);
    }
  }

  /// Decides what becomes of everything that is pending.
  void lose(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const double chance = seed == 0 ? 0.0 : seed == 1 ? 1.0 : std::array{0.1, 0.5, 0.9}[random() % 3];
    const auto kept = [&] { return std::uniform_real_distribution<double>(0, 1)(random) < chance; };
    std::set<std::pair<std::size_t, std::string>> lost;
    for (const RecordedCall* call : pending_names_) {
      const std::pair from{call->node, call->name}, to{call->other, call->new_name};
      const bool moves = call->kind == Kind::rename || call->kind == Kind::exchange;
      const bool possible = lost.count(from) == 0 && (!moves || lost.count(to) == 0);
      if (possible && (seed == 2 || kept())) {
        apply(*call);
      } else {
        lost.insert(from);
        if (moves) lost.insert(to);
      }
    }
    pending_names_.clear();
    for (auto& [node, calls] : pending_data_) {
      // each page, and the length, stops somewhere on its way
      const auto reached = [&](std::size_t states) {
        if (seed <= 2) return seed == 1 ? states : 0;
        return kept() ? states : static_cast<std::size_t>(random() % (states + 1));
      };
      std::map<std::uint64_t, std::vector<const RecordedCall*>> by_page;
      for (const RecordedCall* call : calls)
        each_page(node, *call, [&](std::uint64_t page) { by_page[page].push_back(call); });
      Content& content = contents_[node];
      for (const auto& [page, changes] : by_page) {
        for (std::size_t i = 0, end = reached(changes.size()); i < end; ++i) change(content, page, *changes[i]);
      }
      for (std::size_t i = 0, end = reached(calls.size()); i < end; ++i) resize(content, *calls[i]);
    }
    pending_data_.clear();
  }

  void write(std::size_t folder, const std::filesystem::path& path) const {
    std::filesystem::create_directories(path);
    for (const auto& [name, node] : entries_[folder]) {
      switch (record_.nodes[node].type) {
        case Record::Type::folder:
          write(node, path / name);
          break;
        case Record::Type::link:
          std::filesystem::create_symlink(record_.nodes[node].target, path / name);
          break;
        case Record::Type::file: {
          const auto content = contents_.find(node);
          std::ofstream(path / name, std::ios::binary) << (content == contents_.end() ? "" : content->second.text());
        }
      }
    }
  }

 private:
  static void change(Content& content, std::uint64_t page, const RecordedCall& call) {
    call.kind == Kind::write ? content.write(page, call) : content.cut(page, call.offset);
  }
  static void resize(Content& content, const RecordedCall& call) {
    content.size = call.kind == Kind::write ? std::max(content.size, call.offset + call.bytes.size()) : call.offset;
  }
  /// Pages that a call may change.
  template <class Visit>
  void each_page(std::size_t node, const RecordedCall& call, Visit visit) const {
    std::uint64_t end = call.offset + call.bytes.size();
    if (call.kind == Kind::truncate) {
      const auto content = contents_.find(node);
      if (content != contents_.end()) end = std::max(end, content->second.size);
      for (const RecordedCall* other : pending_data_.at(node)) end = std::max(end, other->offset + other->bytes.size());
    }
    for (std::uint64_t page = call.offset / kPage; page * kPage < end; ++page) visit(page);
  }

  void sync(std::size_t node) {
    if (record_.nodes[node].type == Record::Type::folder) {
      std::erase_if(pending_names_, [&](const RecordedCall* call) {
        const bool moves = call->kind == Kind::rename || call->kind == Kind::exchange;
        if (call->node != node && !(moves && call->other == node)) return false;
        apply(*call);
        return true;
      });
      return;
    }
    const auto found = pending_data_.find(node);
    if (found == pending_data_.end()) return;
    Content& content = contents_[node];
    for (const RecordedCall* call : found->second) {
      each_page(node, *call, [&](std::uint64_t page) { change(content, page, *call); });
      resize(content, *call);
    }
    pending_data_.erase(found);
  }

  void apply(const RecordedCall& call) {
    Entries& from = entries_[call.node];
    switch (call.kind) {
      case Kind::make:
        from[call.name] = call.other;
        break;
      case Kind::remove:
        from.erase(call.name);
        break;
      case Kind::exchange:
        if (from.count(call.name) && entries_[call.other].count(call.new_name))
          std::swap(from[call.name], entries_[call.other][call.new_name]);
        break;
      default: {
        const auto found = from.find(call.name);
        if (found == from.end()) break;  // the folder it came from was never there
        const std::size_t node = found->second;
        from.erase(found);
        entries_[call.other][call.new_name] = node;
      }
    }
  }

  const Record& record_;
  std::vector<Entries> entries_;  // of each folder, durable
  std::map<std::size_t, Content> contents_;
  std::vector<const RecordedCall*> pending_names_;
  std::map<std::size_t, std::vector<const RecordedCall*>> pending_data_;
};

}  // namespace

Record* Record::active() { return active_record().load(); }
void Record::activate(Record* record) { active_record() = record; }

std::size_t Record::find(dev_t of, ino_t inode) const {
  const auto found = of == device ? nodes_by_inode.find(inode) : nodes_by_inode.end();
  return found == nodes_by_inode.end() ? 0 : found->second;
}

std::size_t Record::add(dev_t of, ino_t inode, Node node) {
  if (of != device) throw std::logic_error("a mount below the root of a crash file system");
  nodes.push_back(std::move(node));
  return nodes_by_inode[inode] = nodes.size() - 1;
}

namespace {

/// Writes down what is below a folder as if it had just been made and synced.
void record_present(Record& record, const std::filesystem::path& folder, std::size_t node) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    struct stat facts {};
    if (::lstat(entry.path().c_str(), &facts) != 0) throw std::runtime_error(entry.path().string() + " is not there");
    const bool is_link = entry.is_symlink(), is_folder = !is_link && entry.is_directory();
    const std::size_t made =
        record.add(facts.st_dev, facts.st_ino,
                   {.type = is_link     ? Record::Type::link
                            : is_folder ? Record::Type::folder
                                        : Record::Type::file,
                    .target = is_link ? std::filesystem::read_symlink(entry.path()).string() : ""});
    record.calls.push_back({.kind = Kind::make, .node = node, .name = entry.path().filename().string(), .other = made});
    if (is_folder) record_present(record, entry.path(), made);
    if (!is_link && !is_folder) {
      record.calls.push_back({.kind = Kind::write, .node = made, .bytes = base::read_file(entry.path()).value()});
      record.calls.push_back({.kind = Kind::sync, .node = made});
    }
  }
  record.calls.push_back({.kind = Kind::sync, .node = node});
}

}  // namespace

CrashFileSystem::CrashFileSystem(const std::string& root, Root state) : record_(std::make_unique<Record>()) {
  if (Record::active() != nullptr) throw std::logic_error("there is one crash file system at a time");
  struct stat facts {};
  if (::stat(root.c_str(), &facts) != 0) throw std::runtime_error(root + " is not there");
  record_->device = facts.st_dev;
  record_->nodes.emplace_back();
  record_->add(facts.st_dev, facts.st_ino, {.type = Record::Type::folder});
  if (state == Root::as_it_is) record_present(*record_, root, 1);
  record_->first_call = record_->calls.size();
  Record::activate(record_.get());
}

CrashFileSystem::~CrashFileSystem() { stop(); }

void CrashFileSystem::stop() {
  if (Record::active() == record_.get()) Record::activate(nullptr);
}

std::size_t CrashFileSystem::num_calls() const {
  const std::lock_guard lock(record_->mutex);
  return record_->calls.size() - record_->first_call;
}

std::map<std::string, std::size_t> CrashFileSystem::calls_by_kind() const {
  static constexpr const char* kNames[] = {"write", "truncate", "sync", "make", "rename", "rename", "remove"};
  std::map<std::string, std::size_t> counts;
  for (const RecordedCall& call : record_->calls) ++counts[kNames[static_cast<std::size_t>(call.kind)]];
  return counts;
}

void CrashFileSystem::write_image(std::size_t calls, std::uint64_t seed, const std::string& folder) const {
  if (Record::active() == record_.get()) throw std::logic_error("stop() comes before an image");
  Disk disk(*record_);
  for (std::size_t i = 0; i < std::min(record_->first_call + calls, record_->calls.size()); ++i)
    disk.take(record_->calls[i]);
  disk.lose(seed);
  disk.write(1, folder);
}

}  // namespace troupe::testing
