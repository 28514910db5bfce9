// The program's only exception type. Callers add context on the way up. A message says what went
// wrong, where, what was found and what was expected; `help` gives a remedy.
#pragma once

#include <concepts>
#include <exception>
#include <string>
#include <utility>

#include "base/text.h"

namespace fp8kv {

// The kind of an error is the exit code of the program.
enum class ErrorKind {
  check = 1,         // a comparison or a gate found a difference: the answer is "no"
  usage = 2,         // the command line cannot be carried out as written
  input = 3,         // a file, a model or data cannot be used, or does not fit the rest
  device = 4,        // the requested device is missing or cannot do this
  undecided = 4,     // the evidence leaves several answers
  resource = 5,      // out of memory or disk, or the system refused a file operation
  interrupted = 130  // SIGINT, SIGTERM or SIGHUP
};

class Error : public std::exception {
 public:
  explicit Error(std::string message, std::string help = "", ErrorKind kind = ErrorKind::input)
      : message_(std::move(message)), help_(std::move(help)), kind_(kind) {}

  // An error without a remedy yet: the remedy depends on the caller, who adds it by with_way_out().
  static Error wanting_way_out(std::string message, ErrorKind kind = ErrorKind::input) {
    Error error(std::move(message), "", kind);
    error.wants_way_out_ = true;
    return error;
  }
  // For memory that ran out, on the host or on a device.
  static Error out_of_memory(std::string message) {
    return wanting_way_out(std::move(message), ErrorKind::resource);
  }

  // The message in one line: contexts from the outermost to the innermost, separated by ": ".
  const char* what() const noexcept override { return message_.c_str(); }
  // The next thing to type or try; "" if there is none.
  const std::string& help() const { return help_; }
  ErrorKind kind() const { return kind_; }

  void add_context(const std::string& context) { message_ = context + ": " + message_; }
  void add_way_out(const std::string& help) {
    if (std::exchange(wants_way_out_, false)) help_ = help;
  }

 private:
  std::string message_;
  std::string help_;
  ErrorKind kind_;
  bool wants_way_out_ = false;
};

[[noreturn]] void fail_with(std::initializer_list<MessagePart> parts);

// Throws an input error whose message is the parts joined.
template <typename... Parts>
[[noreturn, gnu::always_inline]] inline void fail(const Parts&... parts) {
  fail_with({MessagePart(parts)...});
}

// Runs `work` and puts `context` in front of any Error from it, except a user's interrupt. Use it
// at most once for each layer crossed.
template <std::invocable Work>
decltype(auto) with_context(const std::string& context, Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (Error& error) {
    if (error.kind() != ErrorKind::interrupted) error.add_context(context);
    throw;
  }
}

// Runs `work` and sets `help` in any Error from it that still wants a remedy
// (Error::wanting_way_out).
template <std::invocable Work>
decltype(auto) with_way_out(const std::string& help, Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (Error& error) {
    error.add_way_out(help);
    throw;
  }
}

// The error for a failed system call with `errno_value`, mostly a resource error: "'path': cannot
// <action>: No space left on device".
Error system_error(const std::string& path, const std::string& action, int errno_value);
[[noreturn]] void fail_system(const std::string& path, const std::string& action, int errno_value);

// For bugs of the program itself, never for bad input. Prints and aborts, in every build.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

}  // namespace fp8kv

#define FP8KV_ASSERT(condition) \
  ((condition) ? void(0) : ::fp8kv::assertion_failed(#condition, __FILE__, __LINE__))
