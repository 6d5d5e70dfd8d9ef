// Result<T>: a value, or an Error that says what went wrong in words a person can act on.
//
// Used wherever something outside the program can make a call fail. The message names the thing, the value and the
// limit ("chunk size 6000 is not a power-of-two multiple of the MTU 4096"). Access to the wrong side aborts (assert):
// check first. C++20 has no std::expected; this is the part of it that libsdr needs.
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace sdr {

enum class ErrorCode {
  InvalidArgument,  // a value the caller gave is outside its limits; nothing was done
  Retry,            // not now, for want of resources (slot, CTS, queue space); nothing was done, call again
  Mismatch,         // the two ends of a connection are configured differently
  PeerUnreachable,  // nothing was heard from the peer within the bound
  System,           // the operating system refused; the message has its reason
  Protocol,         // the peer broke the protocol
  Closed,           // the object was closed or has failed before; the message has the first reason
};

struct Error {
  ErrorCode code = ErrorCode::InvalidArgument;
  std::string message;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & {
    assert(ok());
    return std::get<0>(state_);
  }
  const T& value() const& {
    assert(ok());
    return std::get<0>(state_);
  }
  T&& value() && {
    assert(ok());
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  [[nodiscard]] const Error& error() const {
    assert(!ok());
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  [[nodiscard]] bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  [[nodiscard]] const Error& error() const {
    assert(!ok());
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace sdr
