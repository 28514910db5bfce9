// What code built with -fsanitize-coverage=trace-pc calls, for programs that do not fuzz. Weak, as
// fp8kv_fuzz has its own.
extern "C" void __sanitizer_cov_trace_pc();
extern "C" __attribute__((weak, no_sanitize_coverage)) void __sanitizer_cov_trace_pc() {}
