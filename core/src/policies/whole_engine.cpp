// Of the whole engine. The page's first module has a file of its own instead
// (wasm/first_module.cpp).
#include "serving/policy.h"

namespace servecast {

bool IsWholeEngine() { return true; }

}  // namespace servecast
