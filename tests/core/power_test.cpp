// Power of GPUs: bounds and laws that hold for any load.
#include "metrics/power.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/documents.h"
#include "gtest/gtest.h"

namespace servecast::testing {
namespace {

HardwareSpec Card() {
  HardwareSpec h;
  h.idle_w = 70;
  h.power_cap_w = 700;
  h.busy_w = 300;
  h.compute_w = 800;
  h.memory_w = 100;
  return h;
}

TEST(Power, AnyUse_IsBetweenIdleAndTheCapAndNeverLessWithMore) {
  const HardwareSpec h = Card();
  EXPECT_EQ(MeanWatts(h, 0, {}), 70);
  EXPECT_EQ(MeanWatts(h, 1, {0.1, 0.5}), 70 + 300 + 80 + 50);
  EXPECT_EQ(MeanWatts(h, 1, {1, 1}), 700);
  EXPECT_EQ(MeanWatts(h, 0.5, {0.5, 0.5}), (70 + 700) / 2);  // capped for half of the time
  for (double busy = 0; busy <= 1; busy += 0.125) {
    for (double use = 0; use <= busy; use += 0.125) {
      const double watts = MeanWatts(h, busy, {use, use});
      EXPECT_GE(watts, h.idle_w);
      EXPECT_LE(watts, h.power_cap_w);
      EXPECT_GE(MeanWatts(h, std::min(1.0, busy + 0.125), {use, use}), watts);
      EXPECT_GE(MeanWatts(h, busy, {use + 0.125, use}), watts);
      EXPECT_GE(MeanWatts(h, busy, {use, use + 0.125}), watts);
    }
  }
}

TEST(Power, CapBelowIdle_DrawsTheIdlePower) {
  HardwareSpec h = Card();
  h.power_cap_w = 50;
  EXPECT_EQ(MeanWatts(h, 1, {1, 1}), h.idle_w);
}

std::vector<std::string> Clients(int clients, const std::string& gpu = "h100-sxm") {
  return {"model={\"preset\":\"llama-3.1-8b\"}", "hardware={\"preset\":\"" + gpu + "\"}",
          "workload={\"arrivals\":{\"process\":\"closed_loop\",\"concurrency\":" +
              std::to_string(clients) + "},\"requests\":" + std::to_string(3 * clients) +
              ",\"prompt_tokens\":{\"distribution\":\"fixed\",\"value\":200},"
              "\"output_tokens\":{\"distribution\":\"fixed\",\"value\":100}}"};
}

TEST(Power, MoreClients_DrawMoreAndSpendLessOnAToken) {
  double watts = 0, joules = 1e9;
  for (const int clients : {1, 4, 16, 64}) {
    const Report report = RunToEnd(Changed(Clients(clients)));
    ASSERT_TRUE(report.power.has_value());
    const PowerReport& power = *report.power;
    EXPECT_GT(power.mean_w, watts) << clients;
    EXPECT_LT(*power.j_per_output_token, joules) << clients;
    EXPECT_LE(power.mean_w, power.peak_w);
    EXPECT_GE(power.serving_w, power.mean_w);
    EXPECT_LE(power.peak_w, 700);
    EXPECT_NEAR(power.energy_j, power.mean_w * report.simulated_s, 1e-6 * power.energy_j);
    EXPECT_NEAR(*power.j_per_request, power.energy_j / (3.0 * clients), 1e-9 * power.energy_j);
    EXPECT_NEAR(power.kwh_per_hour, power.mean_w / 1000, 1e-12);
    watts = power.mean_w;
    joules = *power.j_per_output_token;
  }
}

TEST(Power, NoCardOfTheFamilyMeasured_HasNoFigure) {
  for (const char* gpu : {"a100-80gb", "l40s", "rtx-4090", "h20"}) {
    EXPECT_FALSE(RunToEnd(Changed(Clients(1, gpu))).power.has_value()) << gpu;
  }
}

TEST(Power, OfAnotherCap_ServesAsBefore) {
  std::vector<std::string> more = Clients(16);
  const Report before = RunToEnd(Changed(more));
  more.emplace_back("hardware.power_cap_w=300");
  const Report capped = RunToEnd(Changed(more));
  EXPECT_EQ(capped.fingerprint, before.fingerprint);
  EXPECT_LE(capped.power->peak_w, 300);
  EXPECT_LT(capped.power->mean_w, before.power->mean_w);
}

TEST(Power, Pools_AddUp) {
  std::vector<std::string> more = Clients(16);
  more.emplace_back(
      R"(cluster={"pools":[{"name":"p","role":"prefill"},{"name":"d","role":"decode","replicas":2}]})");
  const Report report = RunToEnd(Changed(more));
  ASSERT_TRUE(report.power.has_value());
  double joules = 0, kwh = 0;
  for (const PoolReport& pool : report.pools) {
    ASSERT_TRUE(pool.power.has_value());
    joules += pool.power->energy_j;
    kwh += pool.power->kwh_per_hour;
  }
  EXPECT_NEAR(report.power->energy_j, joules, 1e-9 * joules);
  EXPECT_NEAR(report.power->kwh_per_hour, kwh, 1e-9 * kwh);
  // Without a law for one of them nothing is said of the whole.
  more.back() =
      R"(cluster={"pools":[{"name":"p","role":"prefill","hardware":"a100-80gb"},{"name":"d","role":"decode"}]})";
  const Report mixed = RunToEnd(Changed(more));
  EXPECT_FALSE(mixed.power.has_value());
  EXPECT_FALSE(mixed.pools[0].power.has_value());
  EXPECT_TRUE(mixed.pools[1].power.has_value());
}

// A card whose cap alone is known has no law, so no figure; a limit can be set all the same.
TEST(Power, LimitBelowTheCap_SlowsArithmeticAndNotReads) {
  for (const char* gpu : {"h100-sxm", "a100-80gb"}) {
    std::vector<std::string> prompts = Clients(4, gpu);
    prompts.emplace_back("workload.prompt_tokens.value=6000");
    prompts.emplace_back("workload.output_tokens.value=2");
    const std::vector<std::string> decodes = Clients(1, gpu);
    double ttft = 0, tpot = 0, watts = 1e9;
    for (const char* limit : {"0", "300", "200", "150"}) {
      const auto limited = [limit](std::vector<std::string> changes) {
        changes.push_back(std::string("hardware.power_limit_w=") + limit);
        return RunToEnd(Changed(changes));
      };
      const Report prefill = limited(prompts), decode = limited(decodes);
      EXPECT_GT(prefill.ttft_ms.mean, ttft * 1.05) << gpu << limit;
      ttft = prefill.ttft_ms.mean;
      if (tpot == 0) tpot = decode.tpot_ms.mean;
      EXPECT_NEAR(decode.tpot_ms.mean, tpot, 0.02 * tpot) << gpu << limit;  // bound by reads
      ASSERT_EQ(prefill.power.has_value(), std::string(gpu) == "h100-sxm");
      if (!prefill.power) continue;
      EXPECT_LT(prefill.power->mean_w, watts);
      watts = prefill.power->mean_w;
      if (*limit != '0') {
        EXPECT_LE(prefill.power->peak_w, std::stod(limit));
      }
    }
  }
}

TEST(Power, LimitThatIsNoLimit_ChangesNoBit) {
  std::vector<std::string> more = Clients(4);
  const Report before = RunToEnd(Changed(more));
  more.emplace_back("hardware.power_limit_w=700");
  EXPECT_EQ(RunToEnd(Changed(more)).fingerprint, before.fingerprint);
}

// Tables of operators were measured at the card's own cap.
TEST(Power, LimitWithMeasuredOperators_IsRefusedOrModelledByPhysics) {
  std::vector<std::string> more = Clients(4);
  more.emplace_back("hardware.power_limit_w=400");
  EXPECT_EQ(RunToEnd(Changed(more)).latency_model.backend, "analytic");
  more.emplace_back(R"(latency={"backend":"operators"})");
  const auto scenario = ParseScenario(Changed(more));
  ASSERT_FALSE(scenario.ok());
  EXPECT_EQ(scenario.issues()[0].path, "/latency/backend");
}

// A limit is a share of the cap, and no card keeps one below what it draws idle.
TEST(Power, LimitThatNoCardKeeps_IsRefused) {
  for (const auto& [gpu, limit] :
       {std::pair("h100-sxm", "70"), {"h100-sxm", "1"}, {"h20", "300"}}) {
    std::vector<std::string> more = Clients(1, gpu);
    more.push_back(std::string("hardware.power_limit_w=") + limit);
    const auto scenario = ParseScenario(Changed(more));
    ASSERT_FALSE(scenario.ok()) << gpu << limit;
    EXPECT_EQ(scenario.issues()[0].path, "/hardware/power_limit_w");
  }
}

TEST(Power, Site_PaysForHostsAndCooling) {
  std::vector<std::string> more = Clients(16);
  const PowerReport bare = *RunToEnd(Changed(more)).power;
  EXPECT_FALSE(bare.site_kwh_per_hour.has_value() || bare.electricity_per_hour.has_value() ||
               bare.co2_kg_per_hour.has_value());
  more.emplace_back("hardware.host_w=150");
  more.emplace_back("hardware.pue=1.2");
  more.emplace_back("hardware.price_per_kwh=0.1");
  more.emplace_back("hardware.co2_g_per_kwh=400");
  const PowerReport site = *RunToEnd(Changed(more)).power;
  EXPECT_EQ(site.mean_w, bare.mean_w);
  const double kwh = 1.2 * (bare.mean_w + 150) / 1000;
  EXPECT_NEAR(*site.site_kwh_per_hour, kwh, 1e-9);
  EXPECT_NEAR(*site.electricity_per_hour, 0.1 * kwh, 1e-9);
  EXPECT_NEAR(*site.co2_kg_per_hour, 0.4 * kwh, 1e-9);
}

// Weighed by their lengths the intervals' powers are the mean, and none is beyond the peak.
TEST(Power, Series_HasTheMean) {
  const Report report = RunToEnd(Changed(Clients(16)));
  const std::vector<double>&watts = report.ColumnOf("series_power_w"),
        &from = report.ColumnOf("series_time_s");
  ASSERT_EQ(watts.size(), from.size());
  double joules = 0;
  for (std::size_t i = 0; i < watts.size(); ++i) {
    const double until = i + 1 < from.size() ? from[i + 1] : report.simulated_s;
    joules += watts[i] * (until - from[i]);
    EXPECT_LE(watts[i], report.power->peak_w * (1 + 1e-12));
  }
  EXPECT_NEAR(joules, report.power->energy_j, 1e-6 * joules);
  EXPECT_TRUE(RunToEnd(Changed(Clients(1, "l40s"))).ColumnOf("series_power_w").empty());
}

TEST(Power, OfAMeasuredCard_SaysHowFarOffItIs) {
  const PowerReport power = *RunToEnd(Changed(Clients(16))).power;
  EXPECT_NEAR(*power.mean_w_low / power.mean_w, 0.783, 1e-9);
  EXPECT_NEAR(*power.mean_w_high, std::min(1.217 * power.mean_w, 700.0), 1e-9);
  EXPECT_NEAR(*power.j_per_output_token_low / *power.j_per_output_token, 0.713, 1e-9);
  std::vector<std::string> own = Clients(16, "l40s");
  own.emplace_back("hardware.busy_w=200");
  EXPECT_FALSE(RunToEnd(Changed(own)).power->mean_w_low.has_value());
}

}  // namespace
}  // namespace servecast::testing
