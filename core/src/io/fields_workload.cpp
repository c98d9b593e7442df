// The fields of a scenario's workload; see fields.cpp.
#include "io/fields_of.h"

namespace servecast {
namespace {

void Describe(FieldVisitor& v, ArrivalSpec& a, const ArrivalSpec& base) {
  Fields<ArrivalSpec> f(v, a, base);
  f.Enum({.name = "process", .help = "how requests arrive; trace: as in a trace file"},
         &ArrivalSpec::process, {"poisson", "constant", "trace"});
  v.When("process", {"poisson", "constant"}, a.process != ArrivalProcess::kTrace,
         [&](FieldVisitor& inner) {
           Fields<ArrivalSpec>(inner, a, base)
               .Add({.name = "rate_per_s",
                     .unit = "req/s",
                     .min = 1e-6,
                     .max = 1e6,
                     .help = "mean rate of arrivals; with sessions, of their first turns"},
                    &ArrivalSpec::rate_per_s);
         });
  v.When("process", {"trace"}, a.process == ArrivalProcess::kTrace, [&](FieldVisitor& inner) {
    Fields<ArrivalSpec>(inner, a, base)
        .Add({.name = "rate_scale",
              .unit = "1",
              .min = 1e-6,
              .max = 1e6,
              .help = "the trace's arrivals come this many times as fast"},
             &ArrivalSpec::rate_scale);
  });
}

void Describe(FieldVisitor& v, LengthSpec& l, const LengthSpec& base) {
  Fields<LengthSpec> f(v, l, base);
  f.Enum({.name = "distribution", .help = "how lengths vary; trace: as in a trace file"},
         &LengthSpec::distribution, {"fixed", "uniform", "lognormal", "empirical", "trace"});
  const auto when = [&](LengthDistribution distribution, std::string_view name, const auto& add) {
    v.When("distribution", {name}, l.distribution == distribution, [&](FieldVisitor& inner) {
      Fields<LengthSpec> g(inner, l, base);
      add(g);
    });
  };
  const auto tokens = [](const char* name, const char* help, bool required = false) {
    return FieldSpec{.name = name,
                     .unit = "tokens",
                     .min = 1,
                     .max = kMaxTokens,
                     .help = help,
                     .required = required};
  };
  when(LengthDistribution::kFixed, "fixed",
       [&](auto& g) { g.Add(tokens("value", "length of every request"), &LengthSpec::value); });
  when(LengthDistribution::kUniform, "uniform", [&](auto& g) {
    g.Add(tokens("min", "shortest"), &LengthSpec::min);
    g.Add(tokens("max", "longest", true), &LengthSpec::max);
  });
  when(LengthDistribution::kLognormal, "lognormal", [&](auto& g) {
    g.Add(tokens("median", "half of the lengths are below"), &LengthSpec::median);
    g.Add(tokens("p99", "99 % of the lengths are below"), &LengthSpec::p99);
    g.Add(tokens("min", "shorter draws are set to it"), &LengthSpec::min);
    g.Add(tokens("max", "longer draws are set to it"), &LengthSpec::max);
  });
  when(LengthDistribution::kEmpirical, "empirical", [&](auto& g) {
    g.Add(tokens("quantiles", "[probability, tokens] from 0 to 1; straight lines between", true),
          &LengthSpec::quantiles);
  });
}

void Describe(FieldVisitor& v, PrefixSpec& p, const PrefixSpec& base) {
  Fields<PrefixSpec> f(v, p, base);
  f.Add({.name = "groups",
         .unit = "groups",
         .min = 0,
         .max = 1e6,
         .help = "how many shared beginnings there are; each session has one of them, drawn "
                 "evenly; 0: nothing is shared"},
        &PrefixSpec::groups);
  f.Add({.name = "tokens",
         .unit = "tokens",
         .min = 0,
         .max = kMaxTokens,
         .help = "length of a shared beginning (a system prompt), before the drawn prompt tokens"},
        &PrefixSpec::tokens);
}

void Describe(FieldVisitor& v, SessionSpec& s, const SessionSpec& base) {
  Fields<SessionSpec> f(v, s, base);
  f.Add({.name = "turns",
         .unit = "turns",
         .min = 1,
         .max = 10000,
         .help = "requests of a conversation; each prompt is all that was said before and then the "
                 "drawn prompt tokens; 1: every request stands alone"},
        &SessionSpec::turns);
  f.Add({.name = "think_time_s",
         .unit = "s",
         .min = 0,
         .max = 1e6,
         .help = "mean time from an answer to the next turn, exponential"},
        &SessionSpec::think_time_s);
}

void Describe(FieldVisitor& v, ClassSpec& c, const ClassSpec& base) {
  Fields<ClassSpec> f(v, c, base);
  f.Add({.name = "name", .help = "what to call the clients of this class", .required = true},
        &ClassSpec::name);
  f.Add({.name = "share",
         .unit = "1",
         .min = 1e-6,
         .max = 1e6,
         .help = "of the sessions, relative to the other classes' shares"},
        &ClassSpec::share);
  f.Add({.name = "priority",
         .min = -1e6,
         .max = 1e6,
         .help = "of its requests; the lower number is the more urgent"},
        &ClassSpec::priority);
  f.Add({.name = "ttft_deadline_ms",
         .unit = "ms",
         .min = 1e-6,
         .max = 1e9,
         .help = "first token due this long after arrival: what the order edf goes by; default: "
                 "none"},
        &ClassSpec::ttft_deadline_ms);
  f.Add({.name = "timeout_s",
         .unit = "s",
         .min = 1e-9,
         .max = 1e8,
         .help = "the client gives up this long after arrival; default: never"},
        &ClassSpec::timeout_s);
}

}  // namespace

void Describe(FieldVisitor& v, WorkloadSpec& w, const WorkloadSpec& base) {
  Fields<WorkloadSpec> f(v, w, base);
  f.Add({.name = "name", .help = "what to call the workload", .label = true}, &WorkloadSpec::name);
  v.Object({.name = "arrivals"},
           [&](FieldVisitor& inner) { Describe(inner, w.arrivals, base.arrivals); });
  v.Object({.name = "prompt_tokens"},
           [&](FieldVisitor& inner) { Describe(inner, w.prompt_tokens, base.prompt_tokens); });
  v.Object({.name = "output_tokens"},
           [&](FieldVisitor& inner) { Describe(inner, w.output_tokens, base.output_tokens); });
  v.Object({.name = "prefix", .nullable = true},
           [&](FieldVisitor& inner) { Describe(inner, w.prefix, base.prefix); });
  v.Object({.name = "sessions", .nullable = true},
           [&](FieldVisitor& inner) { Describe(inner, w.sessions, base.sessions); });
  ListField classes =
      ListOf(w.classes, base.classes,
             [](FieldVisitor& inner, ClassSpec& c, const ClassSpec& b) { Describe(inner, c, b); });
  v.List({.name = "classes", .min = 0, .max = 100, .help = "kinds of clients", .nullable = true},
         classes);
  f.Add({.name = "requests",
         .unit = "requests",
         .min = 1,
         .max = static_cast<double>(kMaxRequests),
         .help = "how many requests arrive, all turns counted; a trace's arrivals bring their own "
                 "number"},
        &WorkloadSpec::requests);
}

}  // namespace servecast
