// Code built with -fsanitize-coverage=trace-pc calls this function at every branch. For programs
// that do not fuzz it does nothing. It is weak, because fp8kv_fuzz has its own function that
// counts.
extern "C" void __sanitizer_cov_trace_pc();
extern "C" __attribute__((weak)) void __sanitizer_cov_trace_pc() {}
