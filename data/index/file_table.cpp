#include "data/index/file_table.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/byte_stream.h"
#include "base/file_io.h"
#include "base/hash.h"
#include "data/video/packet_codec.h"

namespace troupe::data {

namespace {

// Sections of files.idx.
constexpr std::size_t kPathSection = 0, kRecordSection = 1, kCodecSection = 2, kPacketSection = 3;
constexpr std::uint32_t kNoCodec = UINT32_MAX;
constexpr std::uint32_t kReordered = 1, kUneven = 2, kOneRef = 4, kFastStart = 8, kEditList = 16;

}  // namespace

/// One entry as it lies in the file. docs/dataset-index.md, "Records".
struct FileTable::Record {
  std::int64_t size;
  std::uint64_t content;
  std::int64_t frames, hidden;
  double fps, first_seconds;
  std::uint64_t packets_at, packets_bytes, packets_digest;
  std::uint32_t codec;
  std::uint32_t flags;
  std::int32_t width, height;
  std::int32_t gop_min, gop_median, gop_max;
  std::uint32_t timescale;
};

struct FileTableWriter::Entry {
  FileTable::Record record;
  std::string packets;
};

FileState file_state(const std::string& path) {
  constexpr std::uint64_t kBlocks = 16, kBlock = 4096;
  const auto fd = base::open_file(path, O_RDONLY | O_NONBLOCK);
  struct stat facts {};
  if (!fd || ::fstat(fd->get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return {};
  const auto size = static_cast<std::uint64_t>(facts.st_size);
  const bool whole = size <= kBlocks * kBlock;
  std::vector<std::byte> buffer(whole ? size : kBlock);
  Xxh3Stream hash;
  for (std::uint64_t b = 0; b < (whole ? 1 : kBlocks); ++b) {
    const auto read = base::read_at(fd->get(), buffer, whole ? 0 : (size - kBlock) * b / (kBlocks - 1), path);
    if (!read || *read != buffer.size()) return {};
    hash.update(buffer);
  }
  const std::string digest = hash.hex();
  return {.size = facts.st_size, .content = xxh3_64(digest)};
}

GopLengths gop_lengths(const PacketTable& table) {
  std::vector<std::int32_t> lengths;
  std::size_t begin = 0;
  for (std::size_t i = 1; i <= table.samples.size(); ++i) {
    if (i < table.samples.size() && !table.samples[i].key) continue;
    lengths.push_back(static_cast<std::int32_t>(i - begin));
    begin = i;
  }
  if (lengths.size() > 1) lengths.pop_back();  // the last one ends with the file, not at a key frame
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  const auto [low, high] = std::minmax_element(lengths.begin(), lengths.end());
  return {.min = *low, .median = *middle, .max = *high};
}

Result<std::shared_ptr<const FileTable>> FileTable::open(std::shared_ptr<const IndexFile> file) {
  static_assert(sizeof(Record) == 104, "docs/dataset-index.md");
  std::shared_ptr<FileTable> table(new FileTable());
  auto paths = PathTable::parse(file->section(kPathSection));
  if (!paths) return file->damage(paths.error().message());
  table->paths_ = std::move(*paths);
  TROUPE_ASSIGN(table->records_, file->array<Record>(kRecordSection));
  if (table->records_.size() != table->paths_.size()) return file->damage("it has as many records as paths no more");
  ByteReader codecs(file->section(kCodecSection));
  for (std::size_t left = codecs.count(3); left > 0; --left) {
    const std::string_view name = codecs.text(), pix_fmt = codecs.text(), parameters = codecs.text();
    table->codecs_.push_back({name, pix_fmt, parameters});
  }
  if (!codecs.at_end()) return file->damage("its list of codecs cannot be read");
  table->packets_ = file->section(kPacketSection);
  table->file_ = std::move(file);
  return std::shared_ptr<const FileTable>(std::move(table));
}

Result<const FileTable::Record*> FileTable::record(std::size_t i) const {
  const Record& r = records_[i];
  const bool fits = r.packets_at <= packets_.size() && r.packets_bytes <= packets_.size() - r.packets_at;
  if (!fits || r.size < 0 || r.frames < 0 || r.hidden < 0 || !(r.fps >= 0) || r.width < 0 || r.height < 0 ||
      (r.codec != kNoCodec && r.codec >= codecs_.size())) {
    return file_->damage("the entry of " + path(i) + " cannot be");
  }
  return &r;
}

Result<IndexedFile> FileTable::entry(std::size_t i) const {
  TROUPE_ASSIGN(const Record* r, record(i));
  IndexedFile out;
  out.state = {.size = r->size, .content = r->content};
  if (r->codec == kNoCodec) return out;
  const Codec& codec = codecs_[r->codec];
  out.video = VideoInfo{.width = r->width,
                        .height = r->height,
                        .frames = r->frames,
                        .fps = r->fps,
                        .codec = std::string(codec.name),
                        .pix_fmt = std::string(codec.pix_fmt),
                        .has_b_frames = (r->flags & kReordered) != 0,
                        .uneven = (r->flags & kUneven) != 0,
                        .first_seconds = r->first_seconds,
                        .hidden = r->hidden};
  out.gop = {.min = r->gop_min, .median = r->gop_median, .max = r->gop_max};
  out.one_ref = (r->flags & kOneRef) != 0;
  out.container = {
      .timescale = r->timescale, .fast_start = (r->flags & kFastStart) != 0, .edit_list = (r->flags & kEditList) != 0};
  return out;
}

Result<std::span<const std::byte>> FileTable::packet_bytes(const Record& r) const {
  const auto bytes = packets_.subspan(r.packets_at, r.packets_bytes);
  if (xxh3_64(bytes) != r.packets_digest) return file_->damage("a packet table does not have its digest");
  return bytes;
}

Result<std::shared_ptr<const PacketTable>> FileTable::packets(std::size_t i) const {
  TROUPE_ASSIGN(const Record* r, record(i));
  if (r->packets_bytes == 0 || r->codec == kNoCodec) return std::shared_ptr<const PacketTable>();
  TROUPE_ASSIGN(const auto bytes, packet_bytes(*r));
  auto table = decode_packets(bytes, r->size);
  if (!table) return file_->damage(table.error().message());
  auto codec = decode_codec(std::as_bytes(std::span(codecs_[r->codec].parameters)));
  if (!codec) return file_->damage(codec.error().message());
  (*table)->codec = std::move(codec->parameters);
  (*table)->pix_fmt = std::move(codec->pix_fmt);
  return std::shared_ptr<const PacketTable>(std::move(*table));
}

FileTableWriter::FileTableWriter() = default;
FileTableWriter::~FileTableWriter() = default;
FileTableWriter::FileTableWriter(FileTableWriter&& other) noexcept = default;
FileTableWriter& FileTableWriter::operator=(FileTableWriter&& other) noexcept = default;
std::size_t FileTableWriter::size() const { return entries_.size(); }

std::uint32_t FileTableWriter::codec(const std::string& blob) {
  return codecs_.emplace(blob, static_cast<std::uint32_t>(codecs_.size())).first->second;
}

void FileTableWriter::add(const std::string& path, const IndexedFile& file) {
  Entry entry{};
  FileTable::Record& r = entry.record;
  r.size = file.state.size;
  r.content = file.state.content;
  r.codec = kNoCodec;
  if (file.video) {
    ByteWriter blob;
    blob.text(file.video->codec);
    blob.text(file.video->pix_fmt);
    blob.text(file.packets ? encode_codec(*file.packets) : std::string());
    r.codec = codec(blob.take());
    r.frames = file.video->frames;
    r.hidden = file.video->hidden;
    r.fps = file.video->fps;
    r.first_seconds = file.video->first_seconds;
    r.width = static_cast<std::int32_t>(file.video->width);
    r.height = static_cast<std::int32_t>(file.video->height);
    r.flags = (file.video->has_b_frames ? kReordered : 0) | (file.video->uneven ? kUneven : 0) |
              (file.one_ref ? kOneRef : 0) | (file.container.fast_start ? kFastStart : 0) |
              (file.container.edit_list ? kEditList : 0);
    r.timescale = file.container.timescale;
    r.gop_min = file.gop.min;
    r.gop_median = file.gop.median;
    r.gop_max = file.gop.max;
  }
  if (file.packets) entry.packets = encode_packets(*file.packets);
  r.packets_digest = xxh3_64(std::string_view(entry.packets));
  entries_.insert_or_assign(path, std::move(entry));
}

void FileTableWriter::keep(const FileTable& table, std::size_t i) {
  const std::string path = table.path(i);
  if (entries_.contains(path)) return;
  const auto record = table.record(i);
  if (!record) return;
  const auto packets = table.packet_bytes(**record);
  if (!packets) return;
  Entry entry{.record = **record, .packets = {}};
  if (entry.record.codec != kNoCodec) {
    const FileTable::Codec& from = table.codecs_[entry.record.codec];
    ByteWriter blob;
    blob.text(from.name);
    blob.text(from.pix_fmt);
    blob.text(from.parameters);
    entry.record.codec = codec(blob.take());
  }
  entry.packets.assign(reinterpret_cast<const char*>(packets->data()), packets->size());
  entries_.emplace(path, std::move(entry));
}

std::string FileTableWriter::finish() const {
  std::vector<std::string> paths;
  std::string records, packets;
  records.reserve(entries_.size() * sizeof(FileTable::Record));
  for (const auto& [path, entry] : entries_) {
    paths.push_back(path);
    FileTable::Record r = entry.record;
    r.packets_at = packets.size();
    r.packets_bytes = entry.packets.size();
    records.append(reinterpret_cast<const char*>(&r), sizeof r);
    packets += entry.packets;
  }
  std::vector<const std::string*> blobs(codecs_.size());
  for (const auto& [blob, id] : codecs_) blobs[id] = &blob;
  ByteWriter codecs;
  codecs.varint(blobs.size());
  for (const std::string* blob : blobs) codecs.bytes(*blob);
  // packet tables carry digests of their own: nobody reads hundreds of megabytes to open an index
  return index_bytes(IndexKind::files,
                     {PathTable::encode(paths), std::move(records), codecs.take(), std::move(packets)}, kPacketSection);
}

}  // namespace troupe::data
