#include "base/tensorboard.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "tests/support/scratch_folder.h"
#include "tests/support/tensorboard_reader.h"

namespace troupe::base {
namespace {

TEST(TensorboardTest, ScalarsReadBackFromTheRecords) {
  const ScratchFolder dir;
  const FakeClock clock(1795260840.5);
  {
    auto sink = make_tensorboard_sink(dir / "tb", clock);
    ASSERT_TRUE((*sink)->write(1, 1795260841.25, 8, {{"train/loss", 0.5}, {"time/step_s", 0.1}}));
    ASSERT_TRUE((*sink)->write(300, 1795260842.5, 16, {{"train/loss", std::numeric_limits<double>::quiet_NaN()}}));
  }
  const auto files = files_in(dir / "tb");
  ASSERT_EQ(files.size(), 1u);
  EXPECT_NE(files[0].find("events.out.tfevents.1795260840."), std::string::npos);
  EXPECT_TRUE(files[0].ends_with("." + std::to_string(::getpid()) + ".0")) << files[0];

  const auto records = read_records(files[0]);
  ASSERT_EQ(records.size(), 3u);
  const auto head = fields_of(records[0]);
  EXPECT_EQ(as<double>(head.find(1)->second), 1795260840.5);
  EXPECT_EQ(head.find(3)->second, "brain.Event:2");
  EXPECT_EQ(head.count(5), 0u);

  const auto event = fields_of(records[1]);
  EXPECT_EQ(as<double>(event.find(1)->second), 1795260841.25);
  EXPECT_EQ(as<std::int64_t>(event.find(2)->second), 1);
  std::map<std::string, float> values;
  for (const auto& [number, bytes] : fields_of(event.find(5)->second)) {
    EXPECT_EQ(number, 1u);
    const auto value = fields_of(bytes);
    values[value.find(1)->second] = as<float>(value.find(2)->second);
  }
  EXPECT_EQ(values, (std::map<std::string, float>{{"train/loss", 0.5f}, {"time/step_s", 0.1f}}));

  const auto last = fields_of(records[2]);
  EXPECT_EQ(as<std::int64_t>(last.find(2)->second), 300) << "two bytes of varint";
}

TEST(TensorboardTest, EachStartWritesItsOwnFile) {
  const ScratchFolder dir;
  const FakeClock clock(1795260840);
  for (int start = 0; start < 2; ++start)
    ASSERT_TRUE((*make_tensorboard_sink(dir / "tb", clock))->write(start, 1, 1, {{"a", 1}}));
  const auto files = files_in(dir / "tb");
  ASSERT_EQ(files.size(), 2u);
  for (const std::string& file : files) EXPECT_EQ(read_records(file).size(), 2u) << file;
}

TEST(TensorboardTest, TextIsAStringTensorOfItsPlugin) {
  const ScratchFolder dir;
  const FakeClock clock(1795260840.5);
  const std::string text(300, 'x');
  ASSERT_TRUE(TensorboardFile::create(dir / "tb", clock)->add_text("configuration", 7, text));
  const auto records = read_records(files_in(dir / "tb").at(0));
  ASSERT_EQ(records.size(), 2u);
  const auto event = fields_of(records[1]);
  EXPECT_EQ(as<double>(event.find(1)->second), 1795260840.5);
  EXPECT_EQ(as<std::int64_t>(event.find(2)->second), 7);
  const auto value = value_of(records[1]);
  EXPECT_EQ(value.find(1)->second, "configuration");
  EXPECT_EQ(plugin_of(value).first, "text");
  const auto tensor = fields_of(value.find(8)->second);
  EXPECT_EQ(as<std::uint64_t>(tensor.find(1)->second), 7u) << "DT_STRING";
  EXPECT_EQ(tensor.find(2)->second, "") << "no dimensions";
  EXPECT_EQ(tensor.find(8)->second, text);
}

TEST(TensorboardTest, APictureCarriesItsSizeAndItsBytes) {
  const ScratchFolder dir;
  // Header of a PNG of 300 x 200 pixels, 8 bits, RGB.
  const std::string png =
      std::string("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\x2c\0\0\0\xc8\x08\x02\0\0\0", 29) + "further bytes";
  auto file = TensorboardFile::create(dir / "tb");
  ASSERT_TRUE(file->add_png("loss", 12, png));
  EXPECT_EQ(file->add_png("loss", 12, "GIF89a and more than twenty-six bytes").error().code(), Errc::invalid_argument);
  EXPECT_EQ(file->add_png("loss", 12, png.substr(0, 20)).error().code(), Errc::invalid_argument);
  ASSERT_TRUE(file->flush());
  const auto records = read_records(files_in(dir / "tb").at(0));
  ASSERT_EQ(records.size(), 2u) << "what is refused leaves nothing";
  const auto value = value_of(records[1]);
  EXPECT_EQ(value.find(1)->second, "loss");
  const auto image = fields_of(value.find(4)->second);
  EXPECT_EQ(as<std::uint64_t>(image.find(1)->second), 200u) << "height";
  EXPECT_EQ(as<std::uint64_t>(image.find(2)->second), 300u) << "width";
  EXPECT_EQ(as<std::uint64_t>(image.find(3)->second), 3u) << "RGB";
  EXPECT_EQ(image.find(4)->second, png);
}

TEST(TensorboardTest, ASessionNamesItsHyperparametersMetricsAndEnd) {
  const ScratchFolder dir;
  FakeClock clock(1795260840);
  {
    auto file = TensorboardFile::create(dir / "tb", clock);
    ASSERT_TRUE(file->begin_session({{"optimizer.lr", 1e-4}, {"algorithm.anneal_lr", true}, {"env.id", "CartPole-v1"}},
                                    {"env/return"}));
    clock.advance(std::chrono::seconds(60));
    ASSERT_TRUE(file->end_session(false));
  }
  const auto records = read_records(files_in(dir / "tb").at(0));
  ASSERT_EQ(records.size(), 4u);
  std::map<std::string, std::multimap<std::uint64_t, std::string>> contents;
  for (std::size_t i = 1; i < records.size(); ++i) {
    const auto value = value_of(records[i]);
    EXPECT_EQ(plugin_of(value).first, "hparams");
    EXPECT_EQ(as<std::uint64_t>(fields_of(value.find(8)->second).find(1)->second), 1u) << "a tensor of floats";
    contents[value.find(1)->second] = fields_of(plugin_of(value).second);
  }

  const auto experiment = fields_of(contents.at("_hparams_/experiment").find(2)->second);
  std::map<std::string, std::uint64_t> types;
  for (auto [at, end] = experiment.equal_range(4); at != end; ++at) {
    const auto info = fields_of(at->second);
    types[info.find(1)->second] = as<std::uint64_t>(info.find(4)->second);
  }
  EXPECT_EQ(types, (std::map<std::string, std::uint64_t>{
                       {"algorithm.anneal_lr", 2}, {"env.id", 1}, {"optimizer.lr", 3}}));  // bool, string, double
  const auto metric = fields_of(fields_of(experiment.find(5)->second).find(1)->second);
  EXPECT_EQ(metric.find(2)->second, "env/return");

  const auto start = fields_of(contents.at("_hparams_/session_start_info").find(3)->second);
  EXPECT_EQ(as<double>(start.find(5)->second), 1795260840.0);
  std::map<std::string, std::multimap<std::uint64_t, std::string>> hparams;
  for (auto [at, end] = start.equal_range(1); at != end; ++at) {
    const auto entry = fields_of(at->second);
    hparams[entry.find(1)->second] = fields_of(entry.find(2)->second);
  }
  ASSERT_EQ(hparams.size(), 3u);
  EXPECT_EQ(as<double>(hparams["optimizer.lr"].find(2)->second), 1e-4);
  EXPECT_EQ(hparams["env.id"].find(3)->second, "CartPole-v1");
  EXPECT_EQ(as<std::uint64_t>(hparams["algorithm.anneal_lr"].find(4)->second), 1u);

  const auto end = fields_of(contents.at("_hparams_/session_end_info").find(4)->second);
  EXPECT_EQ(as<std::uint64_t>(end.find(1)->second), 2u) << "a failure";
  EXPECT_EQ(as<double>(end.find(2)->second), 1795260900.0);
}

}  // namespace
}  // namespace troupe::base
