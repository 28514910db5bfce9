#include <cstdio>
#include <filesystem>
#include <new>

#include "base/error.h"
#include "base/error_text.h"
#include "base/interrupt.h"
#include "cli/cli.h"
#include "commands/commands.h"
#include "files/output/write_file.h"
#include "inputs/addresses.h"
#include "options/model_names.h"

namespace {

std::string prefix(const std::string& command) {
  return "fp8kv: " + (command.empty() ? "" : command + ": ");
}

// Prints the error with its whole context on one line, then the advice on another.
int report(const std::string& command, const fp8kv::Error& error) {
  if (error.kind() == fp8kv::ErrorKind::interrupted) fp8kv::heard_interrupt();
  const std::string text = fp8kv::error_text(prefix(command), error);
  std::fwrite(text.data(), 1, text.size(), stderr);
  return static_cast<int>(error.kind());
}

}  // namespace

int main(int argc, char** argv) {
  std::string command;
  try {
    fp8kv::install_interrupt_handlers();
    auto parsed = fp8kv::parse_command_line(argc, argv);
    if (!parsed) return 0;
    command = parsed->name;
    fp8kv::set_interrupt_message(prefix(command) + "interrupted\n");
    const fp8kv::ReadModels models = fp8kv::read_addresses(parsed->options);
    fp8kv::find_models(parsed->options);
    std::visit([](const auto& options) { fp8kv::run_command(options); }, parsed->options);
    return 0;
  } catch (const fp8kv::Error& error) {
    return report(command, error);
  } catch (const fp8kv::BrokenPipe&) {
    return 0;
  } catch (const std::filesystem::filesystem_error& error) {
    // std::filesystem throws this from simple queries, such as whether a path is a folder.
    return report(command,
                  fp8kv::system_error(error.path1().string(), "open", error.code().value()));
  } catch (const std::bad_alloc&) {
    return report(command,
                  fp8kv::Error("out of memory", "free memory, or give the command less to do",
                               fp8kv::ErrorKind::resource));
  }
}
