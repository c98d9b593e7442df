// See base.h. The only place of the engine that writes anywhere, and only on its way to abort.
#include "base/base.h"

#include <cstdio>
#include <cstdlib>

namespace servecast {

void CheckFailed(const char* rule, const char* file, int line) {
  std::fprintf(stderr, "servecast: broken invariant \"%s\" at %s:%d\n", rule, file, line);
  std::abort();
}

}  // namespace servecast
