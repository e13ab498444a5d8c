#include "monitoring/gpu_stats.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "monitoring/metrics.h"
#include "tests/monitoring/exposition_check.h"

namespace kith::monitoring {
namespace {

using ::testing::IsEmpty;

// The same library as the one that GpuStats loads: its mode is shared.
class FakeNvml : public ::testing::Test {
 protected:
  FakeNvml() : handle_(dlopen(KITH_FAKE_NVML, RTLD_NOW)) {
    EXPECT_NE(handle_, nullptr) << dlerror();
    mode(0);
  }
  ~FakeNvml() override { mode(0); }
  void mode(int value) { reinterpret_cast<void (*)(int)>(dlsym(handle_, "fake_nvml_mode"))(value); }

  void* handle_;
};

TEST_F(FakeNvml, GivesTheFiguresOfEachCardInBaseUnits) {
  const auto cards = GpuStats::load(KITH_FAKE_NVML)->read(std::chrono::seconds(10));
  ASSERT_EQ(cards.size(), 2U);
  EXPECT_EQ(cards[0].index, "0");
  EXPECT_EQ(cards[0].uuid, "GPU-0");
  EXPECT_EQ(cards[0].name, "Test Card");
  EXPECT_EQ(cards[0].utilization_ratio, 0.75);
  EXPECT_EQ(cards[0].memory_used_bytes, 2.0 * (1 << 30));
  EXPECT_EQ(cards[0].memory_size_bytes, 8.0 * (1 << 30));
  EXPECT_DOUBLE_EQ(cards[0].energy_joules.value(), 1500.5);
  EXPECT_DOUBLE_EQ(cards[0].power_watts.value(), 250);
  EXPECT_EQ(cards[0].temperature_celsius, 61);
  EXPECT_EQ(cards[1].index, "1");
  EXPECT_EQ(cards[1].utilization_ratio, 0.1);
}

TEST_F(FakeNvml, LeavesOutWhatACardDoesNotTell) {
  const auto cards = GpuStats::load(KITH_FAKE_NVML)->read(std::chrono::seconds(10));
  ASSERT_EQ(cards.size(), 2U);
  EXPECT_FALSE(cards[1].energy_joules.has_value());
  EXPECT_FALSE(cards[1].power_watts.has_value());
}

TEST_F(FakeNvml, AppearsInAScrape) {
  const ManualClock clock;
  Metrics metrics(clock, GpuStats::load(KITH_FAKE_NVML));
  testing::Scrape out;
  for (int tries = 0;
       tries < 40 && !out.has("kith_gpu_info{gpu=\"0\",uuid=\"GPU-0\",name=\"Test Card\"}");
       ++tries)
    out = testing::parse_exposition(metrics.render({}));
  EXPECT_THAT(out.problems, IsEmpty());
  EXPECT_EQ(out.value("kith_gpu_info{gpu=\"0\",uuid=\"GPU-0\",name=\"Test Card\"}"), 1);
  EXPECT_EQ(out.value("kith_gpu_utilization_ratio{gpu=\"1\",uuid=\"GPU-1\"}"), 0.1);
  EXPECT_EQ(out.value("kith_gpu_energy_joules_total{gpu=\"0\",uuid=\"GPU-0\"}"), 1500.5);
  EXPECT_EQ(out.count("kith_gpu_energy_joules_total"), 1U);
}

TEST_F(FakeNvml, KeepsAScrapeSmallWithManyCards) {
  mode(3);
  EXPECT_EQ(GpuStats::load(KITH_FAKE_NVML)->read(std::chrono::seconds(10)).size(), kGpusMax);
}

TEST_F(FakeNvml, WithoutAWorkingDriverThereAreNoCards) {
  mode(1);
  EXPECT_THAT(GpuStats::load(KITH_FAKE_NVML)->read(std::chrono::seconds(10)), IsEmpty());
}

TEST_F(FakeNvml, ADriverThatHangsHoldsUpNoScrape) {
  const auto cards = GpuStats::load(KITH_FAKE_NVML);
  EXPECT_EQ(cards->read(std::chrono::seconds(10)).size(), 2U);
  mode(2);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(cards->read(std::chrono::milliseconds(20)).size(), 2U) << "the figures of before";
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  mode(0);
  EXPECT_EQ(cards->read(std::chrono::seconds(10)).size(), 2U);
}

TEST(Gpus, AreNotThereWithoutTheLibrary) {
  EXPECT_EQ(GpuStats::load("libkith-no-such-library.so.1"), nullptr);
}

TEST(Gpus, AreNotTakenFromALibraryThatIsSomethingElse) {
  EXPECT_EQ(GpuStats::load("libm.so.6"), nullptr);
}

}  // namespace
}  // namespace kith::monitoring
