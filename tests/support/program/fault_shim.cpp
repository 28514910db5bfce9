// Preloaded into a program, makes its n-th file operation fail. FP8KV_FAULT_AT=n counts from 1.
// FP8KV_FAULT_ONCE=file makes the first operation fail that finds this file. FP8KV_FAULT_ERRNO is
// the errno, or 0 for a kill. FP8KV_FAULT_LOG names a file that gets the number of operations.
// Counts operations that open, read, make, change or remove files. Closing is left out because it
// cannot be retried, and so are the standard streams.
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

namespace {

std::atomic<long> operations{0};

long number(const char* name, long otherwise) {
  const char* text = getenv(name);
  return text ? atol(text) : otherwise;
}

// Counts an operation. Returns whether it must fail, and then sets errno.
bool fails() {
  const int before = errno;
  const long wanted = number("FP8KV_FAULT_AT", 0);
  const char* file = getenv("FP8KV_FAULT_ONCE");
  const bool found = file && access(file, F_OK) == 0;
  errno = before;
  if (++operations != wanted && !found) return false;
  const long error = number("FP8KV_FAULT_ERRNO", EIO);
  if (error == 0) kill(getpid(), SIGKILL);
  errno = static_cast<int>(error);
  return true;
}

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

mode_t mode_of(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

__attribute__((destructor)) void report() {
  const char* path = getenv("FP8KV_FAULT_LOG");
  if (!path) return;
  const int file =
      next<int(const char*, int, ...)>("open")(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  char text[32];
  const int length = snprintf(text, sizeof text, "%ld", operations.load());
  if (next<ssize_t(int, const void*, size_t)>("write")(file, text, static_cast<size_t>(length)) <
      0) {
    abort();
  }
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  if (fails()) return -1;
  return next<int(const char*, int, ...)>("open")(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  if (fails()) return -1;
  return next<int(const char*, int, ...)>("open64")(path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  if (fails()) return -1;
  return next<int(int, const char*, int, ...)>("openat")(folder, path, flags, mode);
}

#define FP8KV_COUNTED(result, name, parameters, arguments) \
  result name parameters {                                 \
    if (fails()) return static_cast<result>(-1);           \
    return next<result parameters>(#name) arguments;       \
  }

FP8KV_COUNTED(int, fsync, (int file), (file))
FP8KV_COUNTED(int, fdatasync, (int file), (file))
FP8KV_COUNTED(int, ftruncate, (int file, off_t size), (file, size))
FP8KV_COUNTED(int, rename, (const char* from, const char* to), (from, to))
FP8KV_COUNTED(int, renameat, (int a, const char* from, int b, const char* to), (a, from, b, to))
FP8KV_COUNTED(int, renameat2, (int a, const char* from, int b, const char* to, unsigned int flags),
              (a, from, b, to, flags))
FP8KV_COUNTED(int, link, (const char* from, const char* to), (from, to))
FP8KV_COUNTED(int, linkat, (int a, const char* from, int b, const char* to, int flags),
              (a, from, b, to, flags))
FP8KV_COUNTED(int, symlink, (const char* from, const char* to), (from, to))
FP8KV_COUNTED(int, unlink, (const char* path), (path))
FP8KV_COUNTED(int, unlinkat, (int folder, const char* path, int flags), (folder, path, flags))
FP8KV_COUNTED(int, remove, (const char* path), (path))
FP8KV_COUNTED(int, rmdir, (const char* path), (path))
FP8KV_COUNTED(int, mkdir, (const char* path, mode_t mode), (path, mode))
FP8KV_COUNTED(int, mkdirat, (int folder, const char* path, mode_t mode), (folder, path, mode))
FP8KV_COUNTED(int, chmod, (const char* path, mode_t mode), (path, mode))
FP8KV_COUNTED(int, fchmod, (int file, mode_t mode), (file, mode))
FP8KV_COUNTED(ssize_t, copy_file_range,
              (int in, off64_t* from, int out, off64_t* to, size_t length, unsigned int flags),
              (in, from, out, to, length, flags))
FP8KV_COUNTED(off_t, lseek, (int file, off_t offset, int whence), (file, offset, whence))
FP8KV_COUNTED(ssize_t, pread, (int file, void* bytes, size_t length, off_t offset),
              (file, bytes, length, offset))

FP8KV_COUNTED(ssize_t, pwrite, (int file, const void* bytes, size_t length, off_t offset),
              (file, bytes, length, offset))
FP8KV_COUNTED(int, fallocate, (int file, int mode, off_t offset, off_t length),
              (file, mode, offset, length))
FP8KV_COUNTED(int, sync_file_range, (int file, off64_t offset, off64_t length, unsigned int flags),
              (file, offset, length, flags))

ssize_t read(int file, void* bytes, size_t length) {
  if (file > 2 && fails()) return -1;
  return next<ssize_t(int, void*, size_t)>("read")(file, bytes, length);
}

ssize_t write(int file, const void* bytes, size_t length) {
  if (file > 2 && fails()) return -1;
  return next<ssize_t(int, const void*, size_t)>("write")(file, bytes, length);
}

int ioctl(int file, unsigned long request, ...) {
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  if (file > 2 && fails()) return -1;
  return next<int(int, unsigned long, ...)>("ioctl")(file, request, argument);
}

}  // extern "C"
