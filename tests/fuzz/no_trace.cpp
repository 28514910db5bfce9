// Code that is built with -fsanitize-coverage=trace-pc calls this function at every branch. This
// one does nothing, for programs that do not fuzz; it is weak, because fp8kv_fuzz has one that
// counts.
extern "C" void __sanitizer_cov_trace_pc();
extern "C" __attribute__((weak, no_sanitize_coverage)) void __sanitizer_cov_trace_pc() {}
