// One row of a file on its way to one or two of a set: what all forms have in common.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "formats/measured_rows.h"
#include "measured_requests.h"
#include "measured_sets.h"

namespace servecast {

// A file of a folder, as it was read.
struct MeasuredFile {
  const std::string& folder;
  std::string path;  // relative to it
  const MeasuredTable& table;
  RequestFiles& requests;

  std::string Name() const;
  std::string Set() const;
  std::string Directory() const;  // "" or ending with a slash
  // Names of the file and of the folders that it is in, the innermost first.
  std::vector<std::string> Places() const;
};

struct Reading {
  const MeasuredFile& file;
  MeasuredRow& row;
  std::size_t index;
  std::vector<Measured>& out;

  // With the set-up that the row, or else the names of its folders, tell of.
  Measured Begin(std::string label) const;
  // What is wrong with a cell says more than what follows from it.
  void Add(Measured m) const;
};

// The parts that are not empty, at most some 200 bytes.
std::string RowLabel(std::initializer_list<std::string_view> parts);

// Whether prefill and decode have servers of their own, and which.
void ReadMode(MeasuredRow& row, MeasuredSetup& setup);

// A serving run whose row states rate and lengths: arrivals and lengths are drawn anew.
void ReadSweep(const Reading& reading);

// Rates of arrivals, by any name.
inline const ColumnNames kRateColumns = {"request_rate_rps", "target_rate_rps",
                                         "mean_arrival_rate_rps"};
inline const ColumnNames kRunColumns = {"experiment", "run", "exp_name"};

// All rows of a table of runs and their stages.
void ReadRuns(const MeasuredFile& file, std::vector<Measured>& out);

}  // namespace servecast
