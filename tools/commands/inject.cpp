#include "scales/write/inject.h"

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "cli/output.h"
#include "commands/commands.h"
#include "inputs/scale_source.h"
#include "json/json.h"
#include "show/runtime_report.h"

namespace fp8kv {
namespace {

std::string report_json(const InjectCommandOptions& options, const InjectReport& report) {
  JsonWriter json;
  json.begin_object()
      .member("schema", "fp8kv.inject/1")
      .member("out", utf8_name(options.out.string()));
  json.member("target", options.target).member("dry_run", options.dry_run);
  json.member("written_bytes", report.written_bytes).key("files").begin_array();
  for (const InjectedFile& file : report.files) {
    json.begin_object().member("name", utf8_name(file.name));
    json.member("how", made_name(file.made));
    json.member("bytes", file.bytes).end_object();
  }
  json.end_array().member("skipped", std::span<const std::string>(report.skipped));
  json.member("notes", std::span<const std::string>(report.notes));
  runtimes_json(json, report.facts);
  return json.end_object().text();
}

std::string report_table(const InjectReport& report) {
  Table table({"file", "bytes", "how"}, {true, false, true});
  for (const InjectedFile& file : report.files) {
    table.add({plain(file.name), grouped(file.bytes), made_name(file.made)});
  }
  return table.text() + "\n" + runtimes_table(report.facts);
}

}  // namespace

void run_command(const InjectCommandOptions& options) {
  Log log(options.verbosity);
  const bool to_stdout = options.out == "-";
  if (to_stdout && !inject_target_at(options.target).is_file) {
    throw Error("--out: '-' is no folder: only the scale file of --for json can go to stdout",
                "name a folder to make", ErrorKind::usage);
  }
  const Checkpoint checkpoint = Checkpoint::open(options.model);
  const KvScales scales = load_scales(options.scales, log);
  const InjectOptions how{.target = options.target,
                          .link = options.link,
                          .dry_run = options.dry_run,
                          .overwrite = options.force,
                          .replace = options.replace,
                          .scales_name = quote(options.scales.string())};
  const InjectReport report = inject_scales(checkpoint, scales, options.out, how);
  for (const std::string& line : report.skipped) log.note("left behind: " + line);
  for (const std::string& line : report.notes) log.note("note: " + line);
  if (to_stdout && !options.dry_run) return;  // which holds the scales, and nothing else
  log.note(cat(options.dry_run ? "would write " : "wrote ", human_bytes(report.written_bytes),
               options.dry_run ? " to make " : " and made ", quote(options.out.string())));
  print(options.json ? report_json(options, report) : report_table(report));
}

}  // namespace fp8kv
