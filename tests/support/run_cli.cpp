#include "support/run_cli.h"

#include <chrono>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <signal.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "base/error.h"
#include "support/temp_dir.h"

namespace fp8kv::test {
namespace {

void redirect(const std::filesystem::path& file, int flags, int descriptor) {
  const int opened = open(file.c_str(), flags, 0600);
  if (opened < 0 || dup2(opened, descriptor) < 0) _exit(126);
}

pid_t start(const std::vector<std::string>& arguments, const std::filesystem::path& folder,
            const TempDir& files) {
  std::vector<char*> argv;
  std::string program = FP8KV_PROGRAM;
  argv.push_back(program.data());
  std::vector<std::string> copies = arguments;
  for (std::string& argument : copies) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child != 0) return child;
  if (chdir(folder.c_str()) != 0) _exit(126);
  redirect(files / "in", O_RDONLY, STDIN_FILENO);
  redirect(files / "out", O_WRONLY | O_CREAT, STDOUT_FILENO);
  redirect(files / "err", O_WRONLY | O_CREAT, STDERR_FILENO);
  execv(program.c_str(), argv.data());
  _exit(127);
}

CliResult finish(pid_t child, const TempDir& files) {
  int status = 0;
  FP8KV_ASSERT(waitpid(child, &status, 0) == child);
  CliResult result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = read_file(files / "out");
  result.err = read_file(files / "err");
  return result;
}

}  // namespace

CliResult run_cli(const std::vector<std::string>& arguments, const std::filesystem::path& folder,
                  const std::string& input) {
  const TempDir files;
  files.write("in", input);
  return finish(start(arguments, folder, files), files);
}

CliResult run_cli_and_signal(const std::vector<std::string>& arguments,
                             const std::filesystem::path& folder, int after_ms, int signal_number) {
  const TempDir files;
  files.write("in", "");
  const pid_t child = start(arguments, folder, files);
  std::this_thread::sleep_for(std::chrono::milliseconds(after_ms));
  kill(child, signal_number);
  return finish(child, files);
}

}  // namespace fp8kv::test
