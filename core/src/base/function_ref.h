// A function that is called while the call it was handed to lasts: two pointers. std::function,
// which owns a copy, makes a class of ten functions of each lambda, which the hundreds of
// descriptions of fields paid for in the time to compile and in what a visit downloads.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace servecast {

template <class Signature>
class FunctionRef;

// Refers to `function`, which must outlive it; cheap to copy.
template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F, class = std::enable_if_t<!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>>>
  // NOLINTNEXTLINE(google-explicit-constructor): a lambda is an argument
  FunctionRef(const F& function)
      : function_(std::addressof(function)), call_([](const void* f, Args... args) -> R {
          return (*static_cast<const F*>(f))(std::forward<Args>(args)...);
        }) {}

  R operator()(Args... args) const { return call_(function_, std::forward<Args>(args)...); }

 private:
  const void* function_;
  R (*call_)(const void*, Args...);
};

}  // namespace servecast
