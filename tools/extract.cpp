#include "base/error.h"
#include "base/file.h"
#include "commands.h"
#include "io/scale_file.h"
#include "scale_source.h"

namespace fp8kv {

void run_command(const ExtractOptions& options) {
  Log log(options.verbosity);
  const KvScales scales = load_scales(options.source, log);
  log.note(cat("found scales of ", count_of(scales.layers.size(), "layer"), " as ",
               quote(scales.provenance.source), " for ", format_name(scales.format)));
  const KvScales portable = with_format(scales, Fp8Format::e4m3fn);
  write_file_atomically(options.out, scale_file_text(portable), options.force);
}

}  // namespace fp8kv
