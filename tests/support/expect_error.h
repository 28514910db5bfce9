// Checks the whole message of an error, so that any change of it is a failure.
#pragma once

#include <string>

#include <doctest/doctest.h>

#include "base/error.h"

namespace fp8kv::test {

// The message of the Error that `work` throws. If it throws none, the test fails and this returns
// "".
template <typename Work>
std::string error_of(Work&& work, ErrorKind kind = ErrorKind::input) {
  try {
    work();
  } catch (const Error& error) {
    CHECK(static_cast<int>(error.kind()) == static_cast<int>(kind));
    return error.what();
  }
  FAIL_CHECK("nothing was thrown");
  return "";
}

// The help of the Error that `work` throws.
template <typename Work>
std::string help_of(Work&& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.help();
  }
  FAIL_CHECK("nothing was thrown");
  return "";
}

}  // namespace fp8kv::test
