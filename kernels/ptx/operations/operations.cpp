#include "kernels/ptx/operations/operations.h"

namespace fp8kv::ptx {

const Operations& all_operations() {
  static const Operations operations = [] {
    Operations all;
    add_integer_operations(all);
    add_float_operations(all);
    add_conversions(all);
    add_moves(all);
    add_warp_operations(all);
    add_matrix_operations(all);
    add_copy_operations(all);
    add_atomic_operations(all);
    return all;
  }();
  return operations;
}

}  // namespace fp8kv::ptx
