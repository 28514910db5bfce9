#include "scales/write/inject.h"

#include <algorithm>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/identity/equalized_from.h"
#include "commands/commands.h"
#include "files/output/copy_file.h"
#include "inputs/scale_source.h"
#include "json/json.h"
#include "options/kept_inputs.h"
#include "options/output_files.h"
#include "report/evidence.h"
#include "scales/write/arrival.h"
#include "show/made_files.h"
#include "show/output.h"
#include "show/verify/runtime_report.h"

namespace fp8kv {
namespace {

std::string report_json(const InjectCommandOptions& options, const InjectReport& report) {
  JsonWriter json;
  json.begin_object()
      .member("schema", "fp8kv.inject/1")
      .member("out", utf8_name(options.out.string()));
  json.member("target", options.target).member("dry_run", options.dry_run);
  json.member("written_bytes", report.written_bytes);
  made_files_json(json, report.files);
  json.member("skipped", std::span<const std::string>(report.skipped));
  json.member("notes", std::span<const std::string>(report.notes));
  json.member("warnings", std::span<const std::string>(report.warnings));
  json.key("serve").begin_array();
  for (const ServeCommand& each :
       serve_commands(report.facts, options.out.string(), report.in_16_bit)) {
    json.begin_object().member("runtime", each.runtime);
    json.member("command", utf8_name(each.command)).end_object();
  }
  json.end_array();
  runtimes_json(json, report.facts);
  return json.end_object().text();
}

std::string report_text(const InjectCommandOptions& options, const InjectReport& report) {
  std::string text =
      options.all ? made_files_table(report.files) + "\n" + runtimes_table(report.facts)
                  : made_files_line(report.files) + "\n" + runtimes_summary(report.facts, "--all");
  const std::vector<ServeCommand> commands =
      serve_commands(report.facts, options.out.string(), report.in_16_bit);
  if (!commands.empty()) text += "\nServe it with\n";
  for (const ServeCommand& each : commands) text += cat("  ", each.command, "\n");
  return text;
}

void check_flags(const InjectCommandOptions& options) {
  const bool is_file = inject_target_at(options.target).is_file;
  if (options.out == "-" && !is_file) {
    throw Error("--out: '-' is no folder: only the scale file of --for json can go to stdout",
                "name a folder to make", ErrorKind::usage);
  }
  if (!options.dry_run) check_json_apart(options.json, options.out);
  if (!is_file) return;
  const char* of_folders = options.replace                       ? "--replace"
                           : options.powers_of_two               ? "--scale-rounding"
                           : options.q_scales                    ? "--q-scales"
                           : options.link != LinkMode::automatic ? "--link"
                                                                 : nullptr;
  if (of_folders == nullptr) return;
  throw Error(
      cat(of_folders, " is for model folders, and --for ", options.target, " writes a scale file"),
      cat("leave out ", of_folders), ErrorKind::usage);
}

// Reports hard links, because two names of one file look like two files.
void say_linked(const InjectCommandOptions& options, const InjectReport& report, Log& log) {
  const auto linked = static_cast<uint64_t>(
      std::count_if(report.files.begin(), report.files.end(),
                    [](const InjectedFile& file) { return file.made == FileMade::hard_linked; }));
  if (linked == 0) return;
  log.note(cat("note: ", count_of(linked, "file"),
               linked == 1 ? " is a hard link" : " are hard links", " to ",
               quote(options.model.string()),
               ": an edit in place changes both folders; --link copy makes copies"));
}

// Notes that the model was equalised for another cache than the one that its scales are for.
void say_equalized(const std::filesystem::path& model, KvFormat scales, Log& log) {
  const std::optional<EqualizedFrom> from = equalized_from(model);
  if (!from || (is_nvfp4(scales) && from->format == "nvfp4")) return;
  log.note(cat("note: ", quote(model.string()), " was ", equalized_text(*from),
               "; measure this cache with 'fp8kv eval' before you serve it"));
}

// "'s.json': too little text: ...", or "" if the evidence is enough.
std::string missing_in(const InjectCommandOptions& options, const KvScales& scales) {
  const std::string missing = missing_evidence(scales.provenance);
  return missing.empty() ? "" : cat(quote(options.scales.string()), ": ", missing);
}

}  // namespace

void run_command(const InjectCommandOptions& options) {
  Log log(options.verbosity);
  check_flags(options);
  const bool is_folder = !inject_target_at(options.target).is_file;
  const std::vector<OutputFile> outputs = {
      {.flag = "--out", .path = options.out, .is_folder = is_folder}};
  check_inputs_kept({{"MODEL", options.model}, {"--scales", options.scales}}, outputs);
  if (!options.dry_run) report_leftovers(outputs, log);
  const bool to_stdout = options.out == "-";
  const Checkpoint checkpoint = Checkpoint::open(options.model);
  const KvScales scales = load_scales(options.scales, log);
  const std::string missing = missing_in(options, scales);
  if (options.require_evidence && !missing.empty()) {
    throw Error(missing, "calibrate on more text", ErrorKind::check);
  }
  const InjectOptions how{.target = options.target,
                          .powers_of_two = options.powers_of_two,
                          .link = options.link,
                          .dry_run = options.dry_run,
                          .overwrite = options.force,
                          .replace = options.replace,
                          .q_scales = options.q_scales,
                          .accept_foreign = options.accept_foreign,
                          .replace_name = "--replace",
                          .accept_foreign_name = kAcceptForeign,
                          .scales_name = quote(options.scales.string())};
  const InjectReport report = with_way_out(
      kReplaceOutput, [&] { return inject_scales(checkpoint, scales, options.out, how); });
  for (const std::string& line : report.skipped) log.note("left behind: " + line);
  for (const std::string& line : report.notes) log.note("note: " + line);
  say_equalized(options.model, scales.format, log);
  say_linked(options, report, log);
  for (const std::string& line : report.warnings) log.warn(line);
  // Scales of other tools have no record of their text. They get no warning.
  if (!missing.empty() && scales.provenance.windows > 0) log.warn(missing);
  if (to_stdout && !options.dry_run) return;  // standard output has only the scales
  log.note(cat(options.dry_run ? "would write " : "wrote ", human_bytes(report.written_bytes),
               options.dry_run ? " to make " : " and made ", quote(options.out.string())));
  options.json ? print(report_json(options, report)) : print_text(report_text(options, report));
}

}  // namespace fp8kv
