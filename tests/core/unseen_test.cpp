// What a scenario says will happen and its run was over before; and what it says in vain.
#include "metrics/unseen.h"

#include <string>
#include <vector>

#include "base/text.h"
#include "core/documents.h"
#include "gtest/gtest.h"
#include "plan/question.h"
#include "servecast/experiment.h"
#include "testing/dice.h"

namespace servecast::testing::unseen_test {
namespace {

struct Kind {
  const char* words;          // of the note
  std::string (*at)(double);  // what happens so many seconds after the start
  bool load = true;
};

// With a number in place of each %.
std::string Put(std::string text, double seconds) {
  const std::string number = NumberText(seconds);
  for (std::size_t at = text.find('%'); at != std::string::npos; at = text.find('%')) {
    text.replace(at, 1, number);
  }
  return text;
}

const std::vector<Kind>& Kinds() {
  static const std::vector<Kind> kKinds = {
      {"the rest of its day of",
       [](double s) {
         return Put(R"(workload.arrivals={"process":"poisson","rate_per_s":10,"profile":"diurnal",)",
                    0) +
                R"("period_h":)" + NumberText(s / 3600) + "}";
       }},
      {"the end of its ramp at",
       [](double s) {
         return Put(R"(workload.arrivals={"process":"poisson","rate_per_s":10,"profile":"ramp",)"
                    R"("ramp_s":%})",
                    s);
       }},
      {"the rate from",
       [](double s) {
         return Put(R"(workload.arrivals={"process":"poisson","rate_per_s":10,)"
                    R"("profile":"piecewise","rate_factors":[[0,1],[%,2]]})",
                    s);
       }},
      {"the spike at",
       [](double s) {
         return Put(R"(workload.arrivals={"process":"poisson","rate_per_s":10,)"
                    R"("spikes":[[%,5,3]]})",
                    s);
       }},
      {"the failure at",
       [](double s) { return Put(R"(cluster.failures={"schedule":[[%,0]]})", s); }, false},
      {"the slow replica from",
       [](double s) { return Put(R"(cluster.slowdowns={"schedule":[[%,0]]})", s); }, false},
      {"the rolling update at",
       [](double s) { return Put(R"(cluster.rolling_update={"at_s":%})", s); }, false},
      {"the number of replicas from",
       [](double s) {
         return Put(R"(cluster.scaling={"policy":"schedule","schedule":[[%,2]]})", s);
       },
       false},
  };
  return kKinds;
}

// Of a run that ends before, and of none that ends later.
TEST(Unseen, IsWhatComesAfterTheRun) {
  Dice dice(7);
  for (const Kind& kind : Kinds()) {
    for (int i = 0; i < 200; ++i) {
      const double at = static_cast<double>(dice.Between(36, 36'000));
      const double run_s = static_cast<double>(dice.Between(1, 40'000)) + 0.5;
      const Scenario s = Parsed(Changed({kind.at(at)}));
      const Unseen unseen = UnseenOf(s, run_s);
      const auto& here = kind.load ? unseen.load : unseen.events;
      const auto& there = kind.load ? unseen.events : unseen.load;
      EXPECT_EQ(here.size(), at > run_s ? 1U : 0U) << kind.words << " " << at << " " << run_s;
      EXPECT_TRUE(there.empty()) << kind.words;
      const std::string words = UnseenWords(s, run_s);
      EXPECT_EQ(words.find(kind.words) != std::string::npos, at > run_s) << words;
      EXPECT_EQ(words.empty(), at < run_s);
    }
    // A horizon is meant.
    EXPECT_EQ(UnseenWords(Parsed(Changed({kind.at(5000), "measure.horizon_s=10"})), 10), "");
  }
  EXPECT_EQ(UnseenWords(Parsed(SmallDocument()), 1), "");
}

Report Judged(std::vector<std::string> set) {
  set.insert(set.begin(), R"(slo=[{"metric":"ttft","percentile":95,"limit_ms":500}])");
  Experiment experiment = Good(Experiment::Create(Parsed(Changed(set))));
  while (!experiment.Advance(INT64_MAX)) {
  }
  return experiment.Snapshot();
}

// No verdict claims more than what was run.
TEST(Unseen, Verdicts_SayIt) {
  for (const Kind& kind : Kinds()) {
    const Report r = Judged({kind.at(20'000)});
    EXPECT_NE(r.verdict.note.find(kind.words), std::string::npos) << r.verdict.note;
    const std::string in_sentence =
        kind.load ? "under the first " : std::string(", before ") + kind.words;
    EXPECT_NE(r.verdict.sentence.find(in_sentence), std::string::npos) << r.verdict.sentence;
  }
  const Report plain = Judged({});
  EXPECT_EQ(plain.verdict.sentence.find("first"), std::string::npos);
  EXPECT_EQ(plain.verdict.note.find("ended after"), std::string::npos);
}

TEST(Unseen, Plans_SayIt) {
  const Scenario s = Parsed(Changed({R"(slo=[{"metric":"ttft","percentile":95,"limit_ms":500}])",
                                     Kinds().front().at(20'000), "workload.requests=1000",
                                     "workload.prompt_tokens.value=2000"}));
  for (const char* name : {"max-rate", "min-gpus"}) {
    Question question = Good(Question::Create(name, s));
    while (!question.Advance(INT64_MAX)) {
    }
    EXPECT_NE(question.Sentence().find(", before the rest of its day"), std::string::npos)
        << question.Sentence();
  }
}

// The first minutes, in which a scaler has not reacted, are what it is asked about.
TEST(Scaler, IsJudgedWhole) {
  const Report r =
      Judged({"workload.arrivals.rate_per_s=60", "workload.requests=3000",
              R"(cluster.scaling={"policy":"hpa","metric":"outstanding","target":5})"});
  ASSERT_TRUE(r.certainty);
  EXPECT_FALSE(r.certainty->long_warmup);
  EXPECT_EQ(r.certainty->from_s, 0);
}

TEST(Priorities, ThatNoOrderReads_AreSaid) {
  const std::string classes =
      R"(workload.classes=[{"name":"a","share":1,"priority":-1},{"name":"b","share":1}])";
  const auto said = [](const std::vector<std::string>& set) {
    return RunToEnd(Changed(set)).verdict.note.find("Priorities of requests change nothing") !=
           std::string::npos;
  };
  EXPECT_TRUE(said({classes}));
  EXPECT_TRUE(said({"scheduler.priority=slo_based"}));
  EXPECT_FALSE(said({}));
  for (const char* reads : {"scheduler.order=priority_fcfs", "scheduler.order=reverse_priority",
                            "scheduler.preemption=priority"}) {
    EXPECT_FALSE(said({classes, reads})) << reads;
  }
}

TEST(Switches, ThatAreNotSet_AreSaid) {
  const auto note = [](const std::vector<std::string>& set) {
    return RunToEnd(Changed(set)).verdict.note;
  };
  for (const char* member : {"max_surge", "max_unavailable", "termination_grace_period_s"}) {
    const std::string name = std::string("cluster.rolling_update.") + member + "=1";
    EXPECT_NE(note({name}).find("cluster.rolling_update has no at_s"), std::string::npos) << name;
    EXPECT_EQ(note({name, "cluster.rolling_update.at_s=1"}).find("has no at_s"), std::string::npos);
  }
  EXPECT_NE(note({"cluster.slowdowns.for_s=1"}).find("neither schedule nor"), std::string::npos);
  EXPECT_NE(note({"workload.retries.hedge_budget=0.1"}).find("has no hedge_after_s"),
            std::string::npos);
  for (const char* set : {"cluster.failures.detect_s=1", "cluster.failures.domain_replicas=2"}) {
    EXPECT_NE(note({set}).find("neither schedule nor mtbf_s"), std::string::npos) << set;
    EXPECT_EQ(note({set, "cluster.failures.mtbf_s=1e6"}).find("neither"), std::string::npos);
  }
  EXPECT_EQ(note({}).find("cluster."), std::string::npos);
}

// What a model has that would change nothing.
TEST(Quantization, ThatNothingReads_IsRefused) {
  const auto issues = [](const std::vector<std::string>& set) {
    return Listed(IssuesOf(Changed(set)));
  };
  EXPECT_NE(issues({"model.quantization=mxfp4"}).find("mxfp4_all"), std::string::npos);
  EXPECT_EQ(issues({"model.quantization=mxfp4_all"}), "");
  for (const char* backend : {"latency.backend=roofline", "latency.backend=trained_physics"}) {
    EXPECT_NE(issues({backend, "model.quantization=fp8"}).find("/latency/weight_bytes"),
              std::string::npos)
        << backend;
    EXPECT_NE(issues({backend, "engine.kv_cache_dtype=fp8"}).find("kv_cache_dtype"),
              std::string::npos)
        << backend;
  }
  EXPECT_EQ(
      issues({"latency.backend=roofline", "latency.weight_bytes=1", "model.quantization=fp8"}), "");
}

}  // namespace
}  // namespace servecast::testing::unseen_test
