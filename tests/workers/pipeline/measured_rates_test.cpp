#include "workers/pipeline/measured_rates.h"

#include <gmock/gmock.h>

namespace troupe::workers {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

DeviceRates adjusted(const std::string& json, const RatesFor& of) {
  DeviceRates rates;
  rates.products = 1, rates.attention = 2, rates.memory = 3, rates.link = 4;
  measured_rates(json, "rates.json").value()(of, rates);
  return rates;
}

TEST(MeasuredRatesTest, TheyTakeThePlaceOfAssumptionsOfTheirDevice) {
  const std::string json = R"({"H200": {"products": 10, "attention_short": 20, "attention_long": 30, "link": 40}})";
  const auto small = adjusted(json, {.device = "H200", .is_long = false, .is_one_node = true});
  EXPECT_EQ(small.measured, "attention_short, link, products");
  EXPECT_EQ(small.products, 10);
  EXPECT_EQ(small.attention, 20);
  EXPECT_EQ(small.link, 40);
  EXPECT_EQ(small.memory, 3) << "what is missing stays";
  EXPECT_EQ(adjusted(json, {.device = "H200", .is_long = true, .is_one_node = true}).attention, 30);
  EXPECT_EQ(adjusted(json, {.device = "H200", .is_long = true, .is_one_node = false}).link, 4)
      << "links were measured within a node";
  const auto other = adjusted(json, {.device = "H100", .is_long = false, .is_one_node = true});
  EXPECT_EQ(other.measured, "");
  EXPECT_EQ(other.products, 1);
}

TEST(MeasuredRatesTest, AFileThatIsWrongIsNamedWithItsKey) {
  const auto error_of = [](const std::string& json) { return measured_rates(json, "rates.json").error().message(); };
  EXPECT_THAT(error_of("[1"), AllOf(HasSubstr("rates.json"), HasSubstr("no JSON object"), HasSubstr("gpu-check")));
  EXPECT_THAT(error_of(R"({"H200": 7})"), HasSubstr("'H200' is no object"));
  EXPECT_THAT(error_of(R"({"H200": {"speed": 7}})"), HasSubstr("'H200' has an unknown rate 'speed'"));
  for (const char* wrong : {"0", "-1", "null", "\"fast\""})
    EXPECT_THAT(error_of(std::string(R"({"H200": {"link": )") + wrong + "}}"), HasSubstr("wanted a positive number"));
  EXPECT_TRUE(measured_rates(R"({"H200": {"hop": 0}})", "rates.json"));
}

}  // namespace
}  // namespace troupe::workers
