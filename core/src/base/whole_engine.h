// What the page's first module leaves out (wasm/first_module.cpp).
#pragma once

namespace servecast {

// A function that the page's first module leaves out, as few scenarios ask for it: nullptr there.
// Not shared between sources, as those of the two modules differ.
template <class Function>
static constexpr Function* OfWholeEngine([[maybe_unused]] Function* function) {
#ifdef SERVECAST_FIRST_MODULE
  return nullptr;
#else
  return function;
#endif
}

}  // namespace servecast
