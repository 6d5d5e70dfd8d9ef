// The edge of the C API: Results become error codes and texts, exceptions stop here.
//
// Threads: the text of the last failure is kept for each thread by itself, in a fixed buffer: keeping it cannot fail.
#pragma once

#include <exception>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <utility>

#include "sdr/result.hpp"
#include "sdr/sdr.h"

namespace sdr::capi {

// Keeps "call: message" for sdr_last_error(); the code that the call returns.
int fail(std::string_view call, const Error& error) noexcept;
int fail(std::string_view call, const std::exception& error) noexcept;

// InvalidArgument that names the first pointer that is null.
struct Argument {
  std::string_view name;
  const void* pointer = nullptr;
};
Result<void> require(std::initializer_list<Argument> arguments);

// Runs the body of an int function: a Result<void>.
template <typename Body>
int answer(std::string_view call, Body&& body) noexcept {
  try {
    const Result<void> result = std::forward<Body>(body)();
    return result.ok() ? SDR_SUCCESS : fail(call, result.error());
  } catch (const std::exception& error) {
    return fail(call, error);
  }
}

// Runs the body of a function that makes a T: a Result<std::unique_ptr<T>>.
template <typename T, typename Body>
T* make(std::string_view call, Body&& body) noexcept {
  try {
    Result<std::unique_ptr<T>> result = std::forward<Body>(body)();
    if (result.ok()) return result.value().release();
    fail(call, result.error());
  } catch (const std::exception& error) {
    fail(call, error);
  }
  return nullptr;
}

}  // namespace sdr::capi
