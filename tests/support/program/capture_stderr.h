// Captures the text that a function prints on stderr.
#pragma once

#include <cstdio>
#include <fcntl.h>
#include <string>
#include <unistd.h>

#include "support/temp_dir.h"

namespace fp8kv::test {

template <typename Work>
std::string stderr_of(Work&& work) {
  const TempDir folder;
  const std::string file = (folder / "stderr").string();
  std::fflush(stderr);
  const int saved = ::dup(STDERR_FILENO);
  const int captured = ::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ::dup2(captured, STDERR_FILENO);
  struct Restore {
    int saved, captured;
    ~Restore() {
      std::fflush(stderr);
      ::dup2(saved, STDERR_FILENO);
      ::close(saved);
      ::close(captured);
    }
  };
  {
    const Restore restore{saved, captured};
    work();
  }
  return read_file(file);
}

}  // namespace fp8kv::test
