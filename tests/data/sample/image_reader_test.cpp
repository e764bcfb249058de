#include "data/sample/image_reader.h"

#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/io/file.h>
#include <arrow/table.h>
#include <gmock/gmock.h>
#include <parquet/arrow/writer.h>

#include "data/health/png.h"
#include "tests/support/scratch_folder.h"

namespace troupe::data {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kHeight = 6, kWidth = 8;

/// A frame whose every pixel is (row, 2 row, 7).
std::string png_of(std::int64_t row) {
  std::vector<std::uint8_t> pixels;
  for (std::int64_t p = 0; p < kHeight * kWidth; ++p)
    pixels.insert(pixels.end(), {static_cast<std::uint8_t>(row), static_cast<std::uint8_t>(2 * row), 7});
  return encode_png({pixels.data(), kHeight, kWidth, 3 * kWidth}).value();
}

class ImageReaderTest : public ::testing::Test {
 protected:
  void SetUp() override { write({}); }
  /// Twenty rows; those in `damaged` hold half a frame.
  void write(const std::vector<std::int64_t>& damaged) {
    arrow::BinaryBuilder cells;
    for (std::int64_t row = 0; row < 20; ++row) {
      std::string bytes = png_of(row);
      if (std::find(damaged.begin(), damaged.end(), row) != damaged.end()) bytes.resize(bytes.size() / 2);
      ASSERT_TRUE(cells.Append(bytes).ok());
    }
    const auto column = cells.Finish().ValueOrDie();
    const auto table = arrow::Table::Make(arrow::schema({arrow::field("front", column->type())}), {column});
    auto out = arrow::io::FileOutputStream::Open(source_.path).ValueOrDie();
    ASSERT_TRUE(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), out, 7).ok());
    ASSERT_TRUE(out->Close().ok());
  }
  static ImageReader::Deadline soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(30); }
  Result<void> read(std::vector<std::int64_t> rows, ImageReader::Deadline deadline = soon()) {
    got_.assign(rows.size(), -1);
    const ImageSink sink{.yuv = [](std::size_t, const Yuv420View&) -> Result<void> {
                           return Error{Errc::internal, "a PNG has no planes"};
                         },
                         .rgb = [this](std::size_t i, const Rgb8View& image) -> Result<void> {
                           EXPECT_EQ(image.height, kHeight);
                           EXPECT_EQ(image.width, kWidth);
                           EXPECT_EQ(image.row(3)[3 * 5 + 1], 2 * image.row(3)[3 * 5]);
                           got_[i] = image.row(3)[3 * 5];
                           return stop_at_ == static_cast<std::int64_t>(i)
                                      ? Result<void>(Error{Errc::cancelled, "enough"})
                                      : Result<void>();
                         }};
    return reader_.read(source_, rows, {}, sink, deadline);
  }

  ScratchFolder folder_;
  ImageSource source_{.path = folder_ / "episode.parquet", .first = 4, .column = "front"};
  ImageReader reader_{ClipDecoder::Options{}};
  std::vector<std::int64_t> got_;
  std::int64_t stop_at_ = -1;
};

TEST_F(ImageReaderTest, RowsCountFromTheEpisodesFirstImage) {
  ASSERT_TRUE(read({0, 3, 3, 11}));
  EXPECT_EQ(got_, (std::vector<std::int64_t>{4, 7, 7, 15}));
  const StageTimes times = reader_.times();
  EXPECT_EQ(times.frames_delivered, 4);
  EXPECT_EQ(times.frames_decoded, 3) << "a repeated row is decoded once";
  EXPECT_GT(times.bytes_read, 0);
  EXPECT_GT(times.decode, 0);
  EXPECT_GT(times.read, 0);
}

TEST_F(ImageReaderTest, ADamagedImageIsNamedWithItsRow) {
  write({9});
  ASSERT_TRUE(read({0, 1}));
  const auto end = read({4, 5});
  EXPECT_EQ(end.error().code(), Errc::data_loss);
  EXPECT_THAT(end.error().message(), HasSubstr(source_.path));
  EXPECT_THAT(end.error().message(), HasSubstr("row 9"));
}

TEST_F(ImageReaderTest, ADeadlineThatHasPassedEndsTheRead) {
  const auto end = read({0, 1}, std::chrono::steady_clock::now() - std::chrono::seconds(1));
  EXPECT_EQ(end.error().code(), Errc::deadline_exceeded);
  EXPECT_THAT(end.error().message(), HasSubstr("0 of 2"));
}

TEST_F(ImageReaderTest, ASinksErrorStopsTheReadAndComesBack) {
  stop_at_ = 1;
  EXPECT_EQ(read({0, 1, 2}).error().code(), Errc::cancelled);
  EXPECT_EQ(got_[2], -1);
}

TEST_F(ImageReaderTest, ARowBehindTheFilesEndIsRefused) {
  EXPECT_THAT(read({17}).error().message(), HasSubstr(source_.path));
}

TEST_F(ImageReaderTest, VideosGoThroughTheFunctionThatIsGiven) {
  std::vector<std::int64_t> asked;
  ImageReader reader(ClipDecoder::Options{},
                     [&](const std::string& path, std::span<const std::int64_t> frames, const ClipDecoder::RgbSink&,
                         ClipDecoder::Deadline) -> Result<void> {
                       EXPECT_EQ(path, "v.mp4");
                       asked.assign(frames.begin(), frames.end());
                       return {};
                     });
  const std::vector<std::int64_t> rows = {0, 2, 2};
  ASSERT_TRUE(reader.read({.path = "v.mp4", .first = 100, .column = {}}, rows, {}, {}, soon()));
  EXPECT_EQ(asked, (std::vector<std::int64_t>{100, 102, 102}));
}

}  // namespace
}  // namespace troupe::data
