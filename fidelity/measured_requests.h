// Files of the requests of one run: when each came, how long it was, what its client saw.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/measured_table.h"
#include "measured_sets.h"
#include "servecast/result.h"

namespace servecast {

// A file of measurements is at most so large.
inline constexpr std::size_t kMostFileBytes = std::size_t{1} << 28;

using RecordedRequests = std::shared_ptr<const std::vector<MeasuredRequest>>;

// Whether the columns are those of requests.
bool IsRequestTable(const MeasuredTable& table);

// "NAME.csv" and "NAME.csv.gz" without ending; "" for other files.
std::string_view CsvStem(std::string_view path);

// The files of requests below a folder, found by the names of runs.
class RequestFiles {
 public:
  // `paths`: what lies below `folder`.
  RequestFiles(const std::string& folder, const std::vector<std::string>& paths);

  // The file of a run whose summary lies in `directory` ("" or ending with a slash): in its folder
  // "requests", beside it, or else below it. nullopt when there is none.
  std::optional<std::string> Find(std::string_view directory, std::string_view run);
  // Issue: what is damaged. A file is read once.
  const Result<RecordedRequests>& Read(const std::string& path);
  // Whether Find has returned it, or it is a part of one that it has, by its name.
  bool IsOfARun(const std::string& path) const;

 private:
  Result<RecordedRequests> ReadAnew(const std::string& path) const;

  std::string folder_;
  std::vector<std::string> paths_;
  std::set<std::string, std::less<>> of_runs_;  // stems
  std::map<std::string, Result<RecordedRequests>> read_;
};

}  // namespace servecast
