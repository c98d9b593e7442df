// What of a calibration travels with a scenario. All of it is a label: it changes no step.
#include "cost/fitted_constants.h"
#include "io/fields_of.h"

namespace servecast {
namespace {

constexpr double kMostOfAny = 1e12, kMostPercent = 1e9, kMostPoints = 1e9;

void DescribeParameter(FieldVisitor& v, CalibrationSpec::Parameter& p,
                       const CalibrationSpec::Parameter& base) {
  using Parameter = CalibrationSpec::Parameter;
  Fields<Parameter> f(v, p, base);
  Choices paths;
  for (const FittedConstant& constant : kFittedConstants) paths.emplace_back(constant.path);
  f.Policy({.name = "path", .help = "field that was fitted", .required = true, .label = true},
           &Parameter::path, paths);
  const auto add = [&f](const char* name, const char* help, double Parameter::*member) {
    f.Add({.name = name, .min = 0, .max = kMostOfAny, .help = help, .label = true}, member);
  };
  add("value", "what was found", &Parameter::value);
  add("low", "lower end of its 95 % interval", &Parameter::low);
  add("high", "upper end of its 95 % interval", &Parameter::high);
}

void DescribeRange(FieldVisitor& v, CalibrationSpec::Range& r, const CalibrationSpec::Range& base) {
  using Range = CalibrationSpec::Range;
  Fields<Range> f(v, r, base);
  f.Policy(
      {.name = "of", .help = "what was measured", .required = true, .label = true}, &Range::of,
      {"prompt_tokens", "batch", "context_tokens", "output_tokens", "rate_per_s", "concurrency"});
  f.Add({.name = "low", .min = 0, .max = kMostOfAny, .help = "least of it", .label = true},
        &Range::low);
  f.Add({.name = "high", .min = 0, .max = kMostOfAny, .help = "most of it", .label = true},
        &Range::high);
}

void DescribeError(FieldVisitor& v, CalibrationSpec::Error& e, const CalibrationSpec::Error& base) {
  using Error = CalibrationSpec::Error;
  Fields<Error> f(v, e, base);
  f.Policy({.name = "of", .help = "what a row is", .required = true, .label = true}, &Error::of,
           {"prompt", "step", "run"});
  f.Policy({.name = "figure", .help = "what of it", .required = true, .label = true},
           &Error::figure, {"ttft", "tpot", "e2e", "step", "wait"});
  f.Add({.name = "held_out", .help = "the fit did not see them", .label = true}, &Error::held_out);
  f.Add({.name = "points", .min = 0, .max = kMostPoints, .help = "rows", .label = true},
        &Error::points);
  const auto add = [&f](const char* name, const char* help, double Error::*member) {
    f.Add({.name = name, .unit = "%", .min = 0, .max = kMostPercent, .help = help, .label = true},
          member);
  };
  add("median", "median absolute error; of a training the mean", &Error::median);
  add("max", "largest absolute error", &Error::max);
}

}  // namespace

void Describe(FieldVisitor& v, CalibrationSpec& c, const CalibrationSpec& base) {
  using Spec = CalibrationSpec;
  Fields<Spec> f(v, c, base);
  const auto text = [&f](const char* name, const char* help, std::string Spec::*member) {
    f.Add({.name = name, .help = help, .label = true}, member);
  };
  text("spec_version", "version of what the constants mean; default: they are of no calibration",
       &Spec::spec_version);
  f.Policy({.name = "backend", .help = "latency model whose constants were fitted", .label = true},
           &Spec::backend, {"analytic", "physics", "blackbox"});
  text("coefficients", "hash of trained coefficients", &Spec::coefficients);
  text("model", "model of the measured server", &Spec::model);
  text("gpu", "its GPU", &Spec::gpu);
  text("engine", "its engine", &Spec::engine);
  text("with", "its weights, and what else changes how far step times are off", &Spec::with);
  f.Add({.name = "tensor_parallel",
         .min = 1,
         .max = 1e6,
         .help = "its GPUs in a group",
         .label = true},
        &Spec::tensor_parallel);
  text("stated", "the server in the words of its files", &Spec::stated);
  text("files", "what these files were", &Spec::files);
  text("date", "day of the calibration", &Spec::date);
  f.Add({.name = "measurements",
         .min = 0,
         .max = kMostPoints,
         .help = "rows that were fitted or held out",
         .label = true},
        &Spec::measurements);
  ListOf parameters(c.parameters, base.parameters, DescribeParameter);
  v.List({.name = "parameters",
          .min = 0,
          .max = 16,
          .help = "constants that were fitted",
          .label = true},
         parameters);
  ListOf seen(c.seen, base.seen, DescribeRange);
  v.List({.name = "seen", .min = 0, .max = 8, .help = "ranges that were measured", .label = true},
         seen);
  ListOf errors(c.errors, base.errors, DescribeError);
  v.List(
      {.name = "errors", .min = 0, .max = 32, .help = "how far predictions are off", .label = true},
      errors);
}

}  // namespace servecast
