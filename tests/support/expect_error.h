// Checks what an error says, whole: a message that drifts is a failure.
#pragma once

#include <string>

#include <doctest/doctest.h>

#include "base/error.h"

namespace fp8kv::test {

// The message of the Error that `work` throws; "" (and a failure) when it throws none.
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

// Its help.
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
