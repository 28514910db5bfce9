#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "commands.h"
#include "io/scale_file.h"
#include "output.h"
#include "scale_source.h"

namespace fp8kv {
namespace {

std::string summary_json(const ExtractOptions& options, const KvScales& scales) {
  JsonWriter json;
  json.begin_object().member("schema", "fp8kv.extract/1").member("out", json_path(options.out));
  json.member("form", scales.provenance.source).member("format", format_name(scales.format));
  json.member("layers", uint64_t{scales.layers.size()});
  return json.end_object().text();
}

}  // namespace

void run_command(const ExtractOptions& options) {
  Log log(options.verbosity);
  check_output_file(options.out, options.force);
  const KvScales scales = load_scales(options.source, log);
  log.note(cat("found scales of ", count_of(scales.layers.size(), "layer"), " as ",
               quote(scales.provenance.source), " for ", format_name(scales.format)));
  const KvScales portable = with_format(scales, Fp8Format::e4m3fn);
  write_file_atomically(options.out, scale_file_text(portable), options.force);
  if (options.out == "-") return;
  log.note("wrote " + quote(options.out.string()));
  if (options.json) print(summary_json(options, scales));
}

}  // namespace fp8kv
