// Which fault of faults.cmake the engine's copy has now; 0: none.
#pragma once

namespace servecast::testing {

extern int planted_fault;

inline bool Planted(int fault) { return planted_fault == fault; }

}  // namespace servecast::testing
