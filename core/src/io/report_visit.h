// Visits the figures of a report: each with its name, unit, help and value, in the order of the
// JSON. report_figures.h, report_findings.h and report_work.h describe every figure once; a visitor
// writes them (report_json.cpp) or lists them (report_dictionary.cpp). From the list come the
// report's types in wasm/servecast.d.ts, the units of the page's numbers and the documentation
// (tests/cli/figures.test.mjs). To add a figure, add its line there.
//
// A visitor has a type About, made of {unit, help} or {unit, help, type}, and
//
//   put(key, about, value)                      a number, truth, text, or optional: null without
//   put.When(present, key, about, value)        absent unless `present`
//   put.Object(key, about, inner)               an object, whose members inner() puts
//   put.ObjectIf(present, key, about, inner)    likewise
//   put.ObjectOf(key, about, optional, inner)   absent without a value; inner(value)
//   put.Array(present, key, about, items, inner)  objects, whose members inner(item, index) puts
//   put.Each(key, about, count, inner)  objects, whose members inner(index) puts
//   put.List(key, about, items, value)      numbers, value(item) of each
//   put.Texts(present, key, about, texts)       texts
//
// A unit is "" (a count, a text), "share" (0 to 1) or a name that is printed after the number.
// `type` is the TypeScript type where it says more than the value's own; of an object or array a
// name makes an interface of that name, anything else stands for the whole member.
#pragma once

namespace servecast {

// Which members are visited: of an experiment, those that are pooled over its runs (and settings)
// and those of its first run stand apart, as two values of one figure would be taken for each
// other; of one run they stand together.
struct Scope {
  bool all = true, run = true;
};

}  // namespace servecast
