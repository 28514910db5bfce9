// Manual pages contain every flag, and formatters accept them.
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "docs/markdown.h"
#include "support/program/program_help.h"
#include "support/program/run_cli.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

std::string page_of(const std::vector<std::string>& command) {
  std::vector<std::string> arguments = {"man"};
  arguments.insert(arguments.end(), command.begin(), command.end());
  const test::CliResult result = test::run_cli(arguments);
  CHECK(result.exit_code == 0);
  CHECK(result.err == "");
  return result.out;
}

// Writes all pages under their file names.
std::vector<std::filesystem::path> write_pages(const test::TempDir& folder) {
  std::vector<std::filesystem::path> files = {folder.write("fp8kv.1", page_of({}))};
  for (const auto& [command, help] : test::commands()) {
    files.push_back(folder.write(cat("fp8kv-", command, ".1"), page_of({command})));
  }
  return files;
}

std::string without_backslashes(std::string text) {
  std::erase(text, '\\');
  return text;
}

}  // namespace

TEST_CASE("man pages: each command has one, with every flag in bold and its text") {
  const std::string program = without_backslashes(page_of({}));
  for (const auto& [command, help] : test::commands()) {
    CAPTURE(command);
    CHECK(program.find(cat("\nfB", command, "fR\n")) != program.npos);
    CHECK(program.find(cat("\n.BR fp8kv-", command, " (1)")) != program.npos);
    const std::string page = without_backslashes(page_of({command}));
    CHECK(page.starts_with(".TH FP8KV-"));
    CHECK(page.find(cat("\n.SH NAME\nfp8kv-", command, " - ")) != page.npos);
    CHECK(page.find(cat("\nfp8kv ", command, " ")) != page.npos);
    for (const std::string& flag : test::flags_of(help)) {
      CAPTURE(flag);
      CHECK(page.find(cat("fB", flag, "fR")) != page.npos);
    }
  }
  CHECK(page_of({"plan"}).find("\n.SH EXAMPLES\n") != std::string::npos);
  CHECK(page_of({"eval"}).find("\n\\fBkld\\fR\n") != std::string::npos);
  CHECK(page_of({"extract"}).find("\nself_attn.kv_scale\n") != std::string::npos);
}

TEST_CASE("man pages: mandoc finds nothing wrong with them") {
  if (!std::filesystem::exists("/usr/bin/mandoc")) {
    test::skip("mandoc is not there");
    return;
  }
  const test::TempDir temp;
  for (const std::filesystem::path& file : write_pages(temp)) {
    CAPTURE(file);
    const test::CliResult result = test::run_cli({"-T", "lint", "-W", "warning", file.string()},
                                                 {.program = "/usr/bin/mandoc"});
    // The pages have no date, so that the same sources give the same bytes.
    for (const std::string& line : test::lines_of(result.out)) {
      CAPTURE(line);
      CHECK(line.find("WARNING: missing date") != line.npos);
    }
    CHECK(result.err == "");
  }
}

TEST_CASE("man pages: man shows them without a warning, and no row is lost") {
  if (!std::filesystem::exists("/usr/bin/man") || !std::filesystem::exists("/usr/bin/groff")) {
    test::skip("man or groff is not there");
    return;
  }
  const test::TempDir temp;
  for (const std::filesystem::path& file : write_pages(temp)) {
    CAPTURE(file);
    const test::CliResult result =
        test::run_cli({"--warnings", "-l", "-P", "cat", file.string()},
                      {.program = "/usr/bin/man",
                       .environment = {"MANWIDTH=80", "LC_ALL=C.UTF-8", "MANROFFSEQ="}});
    CHECK(result.exit_code == 0);
    CHECK(result.err == "");
    CHECK(result.out.find("fp8kv") != std::string::npos);
  }
}

}  // namespace fp8kv
