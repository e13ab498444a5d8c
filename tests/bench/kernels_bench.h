// kith_bench kernels: what one pass of the replica over a fragment costs, in memcpys of the same
// fragment.
#pragma once

namespace kith::bench {

// [--mib 44] [--fragment-mib 4] [--rounds 15]: a table on stdout; exit code.
int run_kernels_bench(int argc, char** argv);

}  // namespace kith::bench
