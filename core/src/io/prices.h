// Lists of GPUs' prices by their terms, "presets/prices/ID.json".
#pragma once

#include <string>

#include "servecast/result.h"

namespace servecast {

// The document with the prices of a list in place of those of its GPUs' presets, of pools with
// their own GPU too. A price that the document gives stays; a preset that the list lacks has none.
// Issues: another list; of kind "missing_file", a list that is not here.
Result<std::string> WithPrices(const std::string& document, const std::string& list);

// The GPUs of a document with such prices that the list lacks.
Issues Unpriced(const std::string& document, const std::string& list);

}  // namespace servecast
