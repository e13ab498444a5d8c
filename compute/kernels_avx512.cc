// Kernel loops compiled for x86-64 with AVX-512 (flags: core.cmake).
#define KITH_KERNEL_TABLE kAvx512Table
#define KITH_KERNEL_NAME "avx512"
#include "compute/kernels_impl.h"
