// The fields of a scenario's workload; see fields.cpp.
#include "io/fields_of.h"
#include "servecast/workload_spec.h"

namespace servecast {
namespace {

FieldSpec Number(const char* name, const char* unit, double min, double max, const char* help) {
  return {.name = name, .unit = unit, .min = min, .max = max, .help = help};
}

using ArrivalFields = Fields<ArrivalSpec>;
Choices WithRate() { return {"poisson", "constant", "gamma", "weibull", "uniform"}; }

// How the rate changes over time.
void DescribeProfile(FieldVisitor& v, ArrivalSpec& a, const ArrivalSpec& base) {
  const bool rate = HasRate(a.process);
  FieldsWhen<ArrivalSpec>(v, "process", WithRate(), rate, a, base, [](ArrivalFields& f) {
    f.Enum({.name = "profile", .help = "how the rate changes over time, as a factor of rate_per_s"},
           &ArrivalSpec::profile, {"flat", "piecewise", "diurnal", "ramp"});
    f.Add({.name = "spikes",
           .max = 1e8,
           .help = "[start_s, duration_s, factor]: from start_s on the rate is multiplied by the "
                   "factor; 0: an outage",
           .columns = "start_s, duration_s, factor"},
          &ArrivalSpec::spikes);
  });
  const auto when = [&](RateProfile profile, std::string_view name, void (*add)(ArrivalFields&)) {
    FieldsWhen<ArrivalSpec>(v, "profile", {name}, rate && a.profile == profile, a, base, add);
  };
  when(RateProfile::kPiecewise, "piecewise", [](ArrivalFields& f) {
    f.Add({.name = "rate_factors",
           .max = 1e8,
           .help = "[from_s, factor]: from then on the rate is rate_per_s times the factor; the "
                   "first is from 0",
           .columns = "from_s, factor"},
          &ArrivalSpec::rate_factors);
  });
  when(RateProfile::kDiurnal, "diurnal", [](ArrivalFields& f) {
    f.Add(Number("peak_hour", "h", 0, 10000, "time of the highest rate, from the start (midnight)"),
          &ArrivalSpec::peak_hour);
    f.Add(Number("peak_to_trough", "1", 1, 1e6,
                 "highest over lowest rate; the rate follows a sinusoid with the mean rate_per_s"),
          &ArrivalSpec::peak_to_trough);
    f.Add(Number("period_h", "h", 1e-3, 10000, "time from peak to peak"), &ArrivalSpec::period_h);
  });
  when(RateProfile::kRamp, "ramp", [](ArrivalFields& f) {
    f.Add(Number("ramp_from", "1", 0, 1e6, "factor of rate_per_s at the start"),
          &ArrivalSpec::ramp_from);
    f.Add(Number("ramp_to", "1", 1e-6, 1e6,
                 "factor of rate_per_s at the end of the ramp and from then on"),
          &ArrivalSpec::ramp_to);
    f.Add(Number("ramp_s", "s", 1e-3, 1e8, "duration of the ramp, which is linear"),
          &ArrivalSpec::ramp_s);
  });
}

void Describe(FieldVisitor& v, ArrivalSpec& a, const ArrivalSpec& base) {
  Fields<ArrivalSpec> f(v, a, base);
  f.Enum({.name = "process",
          .help = "how requests arrive; trace: as in a trace file; static: all at 0; closed_loop: "
                  "each client sends its next request after an answer"},
         &ArrivalSpec::process,
         {"poisson", "constant", "trace", "gamma", "weibull", "uniform", "static", "closed_loop"});
  const auto when = [&](const Choices& processes, bool active, void (*add)(ArrivalFields&)) {
    FieldsWhen<ArrivalSpec>(v, "process", processes, active, a, base, add);
  };
  when(WithRate(), HasRate(a.process), [](ArrivalFields& g) {
    g.Add({.name = "rate_per_s",
           .unit = "req/s",
           .min = 1e-6,
           .max = 1e6,
           .help = "mean arrival rate; with sessions, that of their first turns"},
          &ArrivalSpec::rate_per_s);
    g.Add(
        {.name = "max_concurrency",
         .unit = "requests",
         .min = 1,
         .max = static_cast<double>(kMaxRequests),
         .help =
             "most requests in flight; others are sent in order as these end, and latencies count "
             "from then; default: any number"},
        &ArrivalSpec::max_concurrency);
  });
  when({"gamma", "weibull"},
       a.process == ArrivalProcess::kGamma || a.process == ArrivalProcess::kWeibull,
       [](ArrivalFields& g) {
         g.Add({.name = "cv",
                .unit = "1",
                .min = 0.01,
                .max = 100,
                .help = "coefficient of variation of the gaps between arrivals; 1: as poisson; "
                        "more: bursts"},
               &ArrivalSpec::cv);
       });
  DescribeProfile(v, a, base);
  when({"closed_loop"}, a.process == ArrivalProcess::kClosedLoop, [](ArrivalFields& g) {
    g.Add({.name = "concurrency",
           .unit = "clients",
           .min = 1,
           .max = static_cast<double>(kMaxRequests),
           .help = "number of clients, each with one request (or session) at a time"},
          &ArrivalSpec::concurrency);
    g.Add({.name = "think_time_s",
           .unit = "s",
           .min = 0,
           .max = 1e6,
           .help = "mean time from an answer to the client's next request, exponential; also after "
                   "a request that was dropped or timed out"},
          &ArrivalSpec::think_time_s);
  });
  Choices begins = WithRate();
  begins.emplace_back("closed_loop");
  when(begins, HasRate(a.process) || a.process == ArrivalProcess::kClosedLoop,
       [](ArrivalFields& g) {
         g.Enum({.name = "start",
                 .help = "how clients begin: all at 0 (together), or at random points of their "
                         "thinking and, at a flat rate, of their conversations (spread)"},
                &ArrivalSpec::start, {"spread", "together"});
       });
  when({"trace"}, a.process == ArrivalProcess::kTrace, [](ArrivalFields& g) {
    g.Add({.name = "rate_scale",
           .unit = "1",
           .min = 1e-6,
           .max = 1e6,
           .help = "the trace's arrivals come this many times as fast"},
          &ArrivalSpec::rate_scale);
    g.Add({.name = "keep",
           .unit = "1",
           .min = 1e-6,
           .max = 1,
           .help = "share of the trace's requests that is kept; each is drawn independently"},
          &ArrivalSpec::keep);
    g.Add({.name = "repeat",
           .unit = "times",
           .min = 0,
           .max = 1e6,
           .help = "how many times the trace is played in a row; 0: until `requests` requests have "
                   "arrived"},
          &ArrivalSpec::repeat);
  });
}

using LengthFields = Fields<LengthSpec>;
enum class LengthsOf { kPrompts, kOutputs, kPromptsOfClass, kOutputsOfClass };

Choices DistributionsOf(LengthsOf what) {
  Choices names = {"fixed",  "uniform", "lognormal", "empirical", "trace",
                   "normal", "zipf",    "ratio",     "workload"};
  const bool of_class = what == LengthsOf::kPromptsOfClass || what == LengthsOf::kOutputsOfClass;
  const bool outputs = what == LengthsOf::kOutputs || what == LengthsOf::kOutputsOfClass;
  const auto drop = [&names](std::string_view name) {
    names.erase(std::find(names.begin(), names.end(), name));
  };
  if (!outputs) drop("ratio");
  drop(of_class ? "trace" : "workload");
  return names;
}

FieldSpec Tokens(const char* name, const char* help, bool required = false) {
  return {.name = name,
          .unit = "tokens",
          .min = 1,
          .max = kMaxTokens,
          .help = help,
          .required = required};
}

void Describe(FieldVisitor& v, LengthSpec& l, const LengthSpec& base, LengthsOf what) {
  const bool of_class = what == LengthsOf::kPromptsOfClass || what == LengthsOf::kOutputsOfClass;
  Fields<LengthSpec> f(v, l, base);
  f.Enum({.name = "distribution",
          .help = of_class ? "how lengths vary; workload: as in the workload"
                           : "how lengths vary; trace: as in a trace file"},
         &LengthSpec::distribution,
         {"fixed", "uniform", "lognormal", "empirical", "trace", "normal", "zipf", "ratio",
          "workload"},
         DistributionsOf(what));
  const auto when = [&](const Choices& names, bool active, void (*add)(LengthFields&)) {
    FieldsWhen<LengthSpec>(v, "distribution", names, active, l, base, add);
  };
  const auto is = [&l](LengthDistribution distribution) { return l.distribution == distribution; };
  const bool zipf = is(LengthDistribution::kZipf), normal = is(LengthDistribution::kNormal),
             lognormal = is(LengthDistribution::kLognormal);
  when({"fixed"}, is(LengthDistribution::kFixed), [](LengthFields& g) {
    g.Add(Tokens("value", "length of every request"), &LengthSpec::value);
  });
  when({"uniform", "zipf"}, zipf || is(LengthDistribution::kUniform), [](LengthFields& g) {
    g.Add(Tokens("min", "shortest length"), &LengthSpec::min);
    g.Add(Tokens("max", "longest length", true), &LengthSpec::max);
  });
  when({"zipf"}, zipf, [](LengthFields& g) {
    g.Add({.name = "theta",
           .unit = "1",
           .min = 0,
           .max = 10,
           .help = "the k-th length from min has weight k^-theta; 0: all are equally likely"},
          &LengthSpec::theta);
    g.Add({.name = "scrambled",
           .help = "frequent lengths are scattered over the range, instead of being the shortest"},
          &LengthSpec::scrambled);
  });
  when({"normal"}, normal, [](LengthFields& g) {
    g.Add(Tokens("mean", "mean before clipping"), &LengthSpec::mean);
    g.Add({.name = "stddev",
           .unit = "tokens",
           .min = 0,
           .max = kMaxTokens,
           .help = "standard deviation, before clipping"},
          &LengthSpec::stddev);
  });
  when({"lognormal"}, lognormal, [](LengthFields& g) {
    g.Add(Tokens("median", "half of the lengths are below"), &LengthSpec::median);
    g.Add(Tokens("p99", "99 % of the lengths are below"), &LengthSpec::p99);
  });
  when({"lognormal", "normal"}, lognormal || normal, [](LengthFields& g) {
    g.Add(Tokens("min", "shorter draws are raised to it"), &LengthSpec::min);
    g.Add(Tokens("max", "longer draws are cut to it"), &LengthSpec::max);
  });
  when({"empirical"}, is(LengthDistribution::kEmpirical), [](LengthFields& g) {
    g.Add(Tokens("quantiles", "[probability, tokens], from 0 to 1; linear in between", true),
          &LengthSpec::quantiles);
  });
  if (what == LengthsOf::kOutputs || what == LengthsOf::kOutputsOfClass) {
    when({"ratio"}, is(LengthDistribution::kRatio), [](LengthFields& g) {
      g.Add({.name = "ratio",
             .unit = "1",
             .min = 1e-3,
             .max = 1e6,
             .help =
                 "drawn prompt tokens per output token (P:D ratio); output lengths are rounded up"},
            &LengthSpec::ratio);
    });
  }
  if (what == LengthsOf::kOutputs || what == LengthsOf::kOutputsOfClass) {
    when({"uniform", "normal", "lognormal", "empirical"}, HasOneDraw(l.distribution),
         [](LengthFields& g) {
           g.Add({.name = "correlation",
                  .unit = "1",
                  .min = -1,
                  .max = 1,
                  .help = "rank correlation with the drawn prompt tokens; 0: independent"},
                 &LengthSpec::correlation);
         });
  }
  if (of_class) return;
  when({"trace"}, is(LengthDistribution::kTrace), [](LengthFields& g) {
    g.Add({.name = "scale",
           .unit = "1",
           .min = 1e-3,
           .max = 1e3,
           .help = "the trace's lengths are multiplied by it"},
          &LengthSpec::scale);
  });
}

void Describe(FieldVisitor& v, PrefixSpec& p, const PrefixSpec& base) {
  Fields<PrefixSpec> f(v, p, base);
  f.Add({.name = "groups",
         .unit = "groups",
         .min = 0,
         .max = 1e6,
         .help = "number of shared prefixes; each session has one of them, drawn evenly; 0: "
                 "nothing is shared"},
        &PrefixSpec::groups);
  f.Add({.name = "tokens",
         .unit = "tokens",
         .min = 0,
         .max = kMaxTokens,
         .help =
             "length of a shared prefix (a system prompt), which precedes the drawn prompt tokens"},
        &PrefixSpec::tokens);
}

void Describe(FieldVisitor& v, SessionSpec& s, const SessionSpec& base) {
  Fields<SessionSpec> f(v, s, base);
  f.Add({.name = "turns",
         .unit = "turns",
         .min = 1,
         .max = 10000,
         .help = "requests in a conversation; each prompt is all that was said before, then the "
                 "drawn prompt tokens; 1: every request stands alone"},
        &SessionSpec::turns);
  f.Add({.name = "think_time_s",
         .unit = "s",
         .min = 0,
         .max = 1e6,
         .help = "mean time from an answer to the next turn, exponential"},
        &SessionSpec::think_time_s);
}

constexpr double kMostAdapters = 100'000;

void Describe(FieldVisitor& v, AdapterSpec& a, const AdapterSpec& base) {
  Fields<AdapterSpec> f(v, a, base);
  f.Add({.name = "count",
         .unit = "adapters",
         .min = 0,
         .max = kMostAdapters,
         .help = "number of LoRA adapters; each session asks for one of them; 0: all ask for the "
                 "model itself"},
        &AdapterSpec::count);
  f.Add(Number("theta", "1", 0, 10,
               "popularity of adapters: the k-th has weight k^-theta (Zipf); 0: all are equally "
               "likely"),
        &AdapterSpec::theta);
}

constexpr double kMostImages = 1000;

void Describe(FieldVisitor& v, ImageSpec& i, const ImageSpec& base) {
  Fields<ImageSpec> f(v, i, base);
  f.Add({.name = "per_request",
         .unit = "images",
         .min = 0,
         .max = kMostImages,
         .help = "images in each request, in front of its text, which prompt_tokens counts alone; "
                 "the model has to have an encoder (model.vision)"},
        &ImageSpec::per_request);
  const auto side = [](const char* name, const char* help) {
    return FieldSpec{.name = name, .unit = "px", .min = 1, .max = 65536, .help = help};
  };
  f.Add(side("width", "width of an image"), &ImageSpec::width);
  f.Add(side("height", "height of an image"), &ImageSpec::height);
  f.Add({.name = "distinct",
         .unit = "images",
         .min = 0,
         .max = 1e6,
         .help = "different images, of which each is drawn evenly: one that was encoded a short "
                 "time ago is not encoded again; 0: no two are the same"},
        &ImageSpec::distinct);
}

void Describe(FieldVisitor& v, ClassSpec& c, const ClassSpec& base) {
  Fields<ClassSpec> f(v, c, base);
  f.Add({.name = "name", .help = "name of this class of clients", .required = true},
        &ClassSpec::name);
  f.Add({.name = "share",
         .unit = "1",
         .min = 1e-6,
         .max = 1e6,
         .help = "share of the sessions, relative to the other classes' shares; unused by a class "
                 "with its own rate"},
        &ClassSpec::share);
  f.Add({.name = "rate_per_s",
         .unit = "req/s",
         .min = 1e-6,
         .max = 1e6,
         .help = "arrival rate of its own, with the workload's process and profile, in addition to "
                 "the arrivals that the other classes share; default: none"},
        &ClassSpec::rate_per_s);
  f.Add({.name = "priority",
         .min = -1e6,
         .max = 1e6,
         .help = "priority of its requests; lower is more urgent"},
        &ClassSpec::priority);
  f.Add(
      {.name = "ttft_deadline_ms",
       .unit = "ms",
       .min = 1e-6,
       .max = 1e9,
       .help =
           "time after arrival by which the first token is due, for the order edf; default: none"},
      &ClassSpec::ttft_deadline_ms);
  f.Add({.name = "timeout_s",
         .unit = "s",
         .min = 1e-9,
         .max = 1e8,
         .help = "time after arrival at which the client gives up; default: never"},
        &ClassSpec::timeout_s);
  f.Add({.name = "acceptance_length",
         .unit = "tokens",
         .min = 1,
         .max = 33,
         .help = "mean number of tokens that a step with all its drafts yields, instead of the "
                 "engine's"},
        &ClassSpec::acceptance_length);
  v.Object({.name = "prompt_tokens", .nullable = true}, [&](FieldVisitor& inner) {
    Describe(inner, c.prompt_tokens, base.prompt_tokens, LengthsOf::kPromptsOfClass);
  });
  v.Object({.name = "output_tokens", .nullable = true}, [&](FieldVisitor& inner) {
    Describe(inner, c.output_tokens, base.output_tokens, LengthsOf::kOutputsOfClass);
  });
  f.Add({.name = "prefix_groups",
         .unit = "groups",
         .min = 0,
         .max = 1e6,
         .help = "number of shared prefixes that only this class has, instead of the workload's"},
        &ClassSpec::prefix_groups);
  f.Add({.name = "prefix_tokens",
         .unit = "tokens",
         .min = 0,
         .max = kMaxTokens,
         .help = "length of its shared prefixes; default: the workload's"},
        &ClassSpec::prefix_tokens);
  f.Add({.name = "turns",
         .unit = "turns",
         .min = 1,
         .max = 10000,
         .help = "requests in each of its conversations; default: the workload's"},
        &ClassSpec::turns);
  f.Add({.name = "think_time_s",
         .unit = "s",
         .min = 0,
         .max = 1e6,
         .help = "mean time from an answer to the next turn; default: the workload's"},
        &ClassSpec::think_time_s);
  f.Add({.name = "adapters",
         .unit = "adapters",
         .min = 0,
         .max = kMostAdapters,
         .help = "number of LoRA adapters that only this class has, instead of the workload's; 0: "
                 "it asks for the model itself"},
        &ClassSpec::adapters);
  f.Add(Number("adapter_theta", "1", 0, 10,
               "popularity of its adapters, as workload.adapters.theta; default: the workload's"),
        &ClassSpec::adapter_theta);
  f.Add({.name = "images_per_request",
         .unit = "images",
         .min = 0,
         .max = kMostImages,
         .help = "images in each of its requests; default: the workload's"},
        &ClassSpec::images_per_request);
}

void Describe(FieldVisitor& v, RetrySpec& r, const RetrySpec& base) {
  Fields<RetrySpec> f(v, r, base);
  f.Add({.name = "max",
         .unit = "retries",
         .min = 0,
         .max = 20,
         .help = "how often a client sends a request again that was turned away or timed out; 0: "
                 "never"},
        &RetrySpec::max);
  f.Add({.name = "backoff_s",
         .unit = "s",
         .min = 1e-6,
         .max = 1e5,
         .help = "time from the end of a failed attempt to the first retry"},
        &RetrySpec::backoff_s);
  f.Add(Number("multiplier", "1", 1, 100, "each further back-off is so many times as long"),
        &RetrySpec::multiplier);
  f.Add({.name = "max_backoff_s", .unit = "s", .min = 1e-6, .max = 1e5, .help = "longest back-off"},
        &RetrySpec::max_backoff_s);
  f.Add(Number("jitter", "1", 0, 1, "most of a back-off that is cut at random, as a share"),
        &RetrySpec::jitter);
  f.Add({.name = "budget",
         .unit = "1",
         .min = 0,
         .max = 20,
         .help = "most that retries may be of all requests so far, as a share; default: no limit"},
        &RetrySpec::budget);
  f.Add(
      {.name = "hedge_after_s",
       .unit = "s",
       .min = 1e-6,
       .max = 1e5,
       .help = "without a first token for so long a client sends the request to a second replica, "
               "too, and keeps the attempt whose first token comes first; default: never"},
      &RetrySpec::hedge_after_s);
  f.Add({.name = "hedge_budget",
         .unit = "1",
         .min = 0,
         .max = 1,
         .help = "most that such second attempts may be of all requests so far, as a share; "
                 "default: no limit"},
        &RetrySpec::hedge_budget);
}

}  // namespace

void Describe(FieldVisitor& v, WorkloadSpec& w, const WorkloadSpec& base) {
  Fields<WorkloadSpec> f(v, w, base);
  f.Add({.name = "name", .help = "what to call the workload", .label = true}, &WorkloadSpec::name);
  v.Object({.name = "arrivals"},
           [&](FieldVisitor& inner) { Describe(inner, w.arrivals, base.arrivals); });
  v.Object({.name = "prompt_tokens"}, [&](FieldVisitor& inner) {
    Describe(inner, w.prompt_tokens, base.prompt_tokens, LengthsOf::kPrompts);
  });
  v.Object({.name = "output_tokens"}, [&](FieldVisitor& inner) {
    Describe(inner, w.output_tokens, base.output_tokens, LengthsOf::kOutputs);
  });
  v.Object({.name = "prefix", .nullable = true},
           [&](FieldVisitor& inner) { Describe(inner, w.prefix, base.prefix); });
  v.Object({.name = "sessions", .nullable = true},
           [&](FieldVisitor& inner) { Describe(inner, w.sessions, base.sessions); });
  v.Object({.name = "adapters", .nullable = true},
           [&](FieldVisitor& inner) { Describe(inner, w.adapters, base.adapters); });
  v.Object({.name = "images", .nullable = true},
           [&](FieldVisitor& inner) { Describe(inner, w.images, base.images); });
  ListOf classes(
      w.classes, base.classes,
      [](FieldVisitor& inner, ClassSpec& c, const ClassSpec& b) { Describe(inner, c, b); });
  v.List({.name = "classes", .min = 0, .max = 100, .help = "kinds of clients", .nullable = true},
         classes);
  v.Object({.name = "retries", .nullable = true},
           [&](FieldVisitor& inner) { Describe(inner, w.retries, base.retries); });
  f.Add({.name = "requests",
         .unit = "requests",
         .min = 1,
         .max = static_cast<double>(kMaxRequests),
         .help = "number of requests that arrive, counting all turns; a trace brings its own "
                 "number, unless it is repeated until there are this many"},
        &WorkloadSpec::requests);
}

}  // namespace servecast
