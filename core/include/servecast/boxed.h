// A member of a struct that most who include the struct do not read.
#pragma once

#include <memory>

namespace servecast {

// A value held by its address: an edit of T compiles those again who read it, not all who include
// what it is a part of. A copy is a T of its own; one that was moved from may only be assigned to
// or destroyed. Where T is known, `template class Boxed<T>;` compiles it once; `extern` elsewhere.
template <class T>
class Boxed {
 public:
  Boxed();
  Boxed(const Boxed& from);
  Boxed(Boxed&& from) noexcept;
  Boxed& operator=(const Boxed& from);
  Boxed& operator=(Boxed&& from) noexcept;
  ~Boxed();

  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return value_.get(); }
  const T* operator->() const { return value_.get(); }

 private:
  std::unique_ptr<T> value_;
};

template <class T>
Boxed<T>::Boxed() : value_(std::make_unique<T>()) {}
template <class T>
Boxed<T>::Boxed(const Boxed& from) : value_(std::make_unique<T>(*from)) {}
template <class T>
Boxed<T>::Boxed(Boxed&& from) noexcept = default;
template <class T>
Boxed<T>& Boxed<T>::operator=(const Boxed& from) {
  return *this = Boxed(from);
}
template <class T>
Boxed<T>& Boxed<T>::operator=(Boxed&& from) noexcept = default;
template <class T>
Boxed<T>::~Boxed() = default;

}  // namespace servecast
