#pragma once

namespace fp8kv {

// Thrown when the reader of standard output has gone away. The program then ends quietly, because
// `fp8kv inspect ... | head` is not a failure.
struct BrokenPipe {};

}  // namespace fp8kv
