#include "options/output_files.h"

#include "base/error.h"
#include "base/shell.h"
#include "files/file.h"
#include "files/special_file.h"
#include "files/temporary.h"

namespace fp8kv {

void check_output_files(const std::vector<OutputFile>& files, bool force) {
  for (size_t i = 0; i < files.size(); ++i) {
    with_way_out(kReplaceOutput, [&] { check_output_file(files[i].path, force); });
    for (size_t j = 0; j < i; ++j) {
      if (!same_output(files[j].path, files[i].path)) continue;
      throw Error(cat(files[j].flag, " and ", files[i].flag, " are the same file: ",
                      quote(files[j].path.string()), " and ", quote(files[i].path.string())),
                  "name another file for one of them", ErrorKind::usage);
    }
  }
}

void sweep_outputs(const std::vector<OutputFile>& files, Log& log) {
  for (const OutputFile& file : files) {
    if (file.path.empty() || file.path == "-" || is_special_file(file.path)) continue;
    for (const Leftover& left : sweep_temporaries(file.path)) {
      const std::string name = quote(left.path.string());
      switch (left.state) {
        case Leftover::State::removed:
          log.note(cat("removed ", name, ", which a run that was killed has left"));
          break;
        case Leftover::State::in_use:
          log.warn(cat(name, ": another run is writing ", quote(file.path.string()), " now"));
          break;
        case Leftover::State::unsure:
          log.warn(cat(name,
                       ": left by a run that was killed, or in use by one on another machine "
                       "or of another user; if there is none, remove it: rm -r ",
                       shell_path(left.path.string())));
          break;
      }
    }
  }
}

void write_output_file(const std::filesystem::path& path, std::string_view bytes, bool force) {
  with_way_out(kReplaceOutput, [&] { write_file_atomically(path, bytes, force); });
}

void check_json_apart(bool json, const std::filesystem::path& out) {
  if (!json || out != "-") return;
  throw Error("--json: standard output is where --out writes the scales",
              "name a file with --out, or leave out --json", ErrorKind::usage);
}

}  // namespace fp8kv
