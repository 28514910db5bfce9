// One function per command: a pipeline of library calls. Each returns when its result is out and
// throws Error otherwise.
#pragma once

#include "options/options.h"

namespace fp8kv {

void run_command(const CalibrateOptions& options);
void run_command(const DiffOptions& options);
void run_command(const DoctorOptions& options);
void run_command(const ExtractOptions& options);
void run_command(const InjectCommandOptions& options);
void run_command(const RunOptions& options);
void run_command(const EvalCommandOptions& options);
void run_command(const AttestCommandOptions& options);
void run_command(const InspectOptions& options);
void run_command(const MergeOptions& options);
void run_command(const PlanOptions& options);
void run_command(const QuantizeOptions& options);
void run_command(const EqualizeOptions& options);
void run_command(const FitCommandOptions& options);
void run_command(const TokenizeOptions& options);
void run_command(const VerifyOptions& options);

}  // namespace fp8kv
