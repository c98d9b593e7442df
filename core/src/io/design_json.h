// Tasks and points of a search (servecast/design.h) as one line of JSON each, and back to the same
// bits: how they travel between processes and workers.
#pragma once

#include <string>
#include <string_view>

#include "io/json_writer.h"
#include "servecast/design.h"
#include "servecast/result.h"

namespace servecast {

std::string_view NameOf(Rung rung);
std::string_view NameOf(DesignState state);

std::string TaskJson(const DesignTask& task);
std::string PointJson(const DesignPoint& point);
// The members of that, into an object that is open; those of energy with kEnergy alone.
void WritePoint(const DesignPoint& point, Least least, JsonWriter& out);

// Issues: a text that neither of the above has written.
Result<DesignTask> ReadTask(std::string_view text);
Result<DesignPoint> ReadPoint(std::string_view text);

}  // namespace servecast
