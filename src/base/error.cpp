#include "base/error.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace fp8kv {

void fail_with(std::initializer_list<MessagePart> parts) {
  throw Error(joined_parts(parts));
}

Error system_error(const std::string& path, const std::string& action, int errno_value) {
  std::string help;
  ErrorKind kind = ErrorKind::resource;
  switch (errno_value) {
    case ENOENT:
    case ENOTDIR:
    case ENAMETOOLONG:
    case ELOOP:
      help = "check the path";
      kind = ErrorKind::input;
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      help = "check the permissions, or choose another place";
      break;
    case ENOSPC:
    case EDQUOT:
      help = "free some space, or choose another place";
      break;
    case EFBIG:
      help = "allow larger files (ulimit -f), or choose another place";
      break;
    default:
      break;
  }
  return Error(
      cat(quote(path), ": cannot ", action, ": ", std::generic_category().message(errno_value)),
      help, kind);
}

void fail_system(const std::string& path, const std::string& action, int errno_value) {
  throw system_error(path, action, errno_value);
}

void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "fp8kv: internal error: %s:%d: '%s' does not hold\n", file, line, condition);
  std::abort();
}

}  // namespace fp8kv
