// CUDA's words for a C++ compiler without CUDA, so that kernels run on the host: a block's threads are coroutines that
// take turns at every barrier. Enough for kernels in which all threads of a block meet the same barriers.
#pragma once
#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(threads)

struct Place { unsigned x; };
static Place blockIdx, threadIdx, blockDim;

namespace host {
constexpr int most_threads = 1024, stack_bytes = 1 << 16;
static ucontext_t scheduler, threads[most_threads];
static bool ended[most_threads];
static std::vector<char> stacks(most_threads * stack_bytes);
static std::function<void()> body;
static char lanes[most_threads][16];

inline void wait() { swapcontext(&threads[threadIdx.x], &scheduler); }
inline void start() {
    body();
    ended[threadIdx.x] = true;
    swapcontext(&threads[threadIdx.x], &scheduler);
}
inline void launch(unsigned grid, unsigned count, std::function<void()> kernel) {
    body = kernel;
    blockDim.x = count;
    for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x) {
        for (unsigned t = 0; t < count; ++t) {
            getcontext(&threads[t]);
            threads[t].uc_stack.ss_sp = &stacks[t * stack_bytes];
            threads[t].uc_stack.ss_size = stack_bytes;
            threads[t].uc_link = &scheduler;
            makecontext(&threads[t], start, 0);
            ended[t] = false;
        }
        for (bool running = true; running;) {
            running = false;
            for (unsigned t = 0; t < count; ++t) {
                if (ended[t]) continue;
                threadIdx.x = t;
                swapcontext(&scheduler, &threads[t]);
                running = true;
            }
        }
    }
}

// An element of so many fraction bits, its exponent biased; rounded to the nearest, ties to even.
template <typename Bits, int fraction, int bias, bool finite> struct Small {
    Bits bits;
    Small() = default;
    explicit Small(float value) {
        const Bits sign = std::signbit(value) ? Bits(1) << (8 * sizeof(Bits) - 1) : 0;
        const int top = (1 << (8 * sizeof(Bits) - 1 - fraction)) - 1;
        const double size = std::fabs(static_cast<double>(value));
        if (std::isnan(value)) { bits = static_cast<Bits>((top << fraction) | ((1 << fraction) - 1)); return; }
        int exponent = size > 0 ? std::max(std::ilogb(std::min(size, 1e300)), 1 - bias) : 1 - bias;
        double steps = std::nearbyint(std::ldexp(size, fraction - exponent));
        if (steps >= (2 << fraction)) { steps /= 2; ++exponent; }
        const bool normal = steps >= (1 << fraction);
        long long code = normal ? ((static_cast<long long>(exponent + bias) << fraction) + static_cast<long long>(steps) - (1 << fraction))
                                : static_cast<long long>(steps);
        const long long most = finite ? (static_cast<long long>(top) << fraction) + (1 << fraction) - 2 : static_cast<long long>(top) << fraction;
        bits = static_cast<Bits>(std::min(code, most)) | sign;
    }
    operator float() const {
        const int top = (1 << (8 * sizeof(Bits) - 1 - fraction)) - 1;
        const int exponent = (bits >> fraction) & top, rest = bits & ((1 << fraction) - 1);
        const bool negative = bits >> (8 * sizeof(Bits) - 1);
        double size = exponent ? std::ldexp(rest + (1 << fraction), exponent - bias - fraction) : std::ldexp(rest, 1 - bias - fraction);
        if (exponent == top && (!finite || rest == (1 << fraction) - 1)) size = rest ? NAN : INFINITY;
        return static_cast<float>(negative ? -size : size);
    }
};
}  // namespace host

using __nv_bfloat16 = host::Small<uint16_t, 7, 127, false>;
using __half = host::Small<uint16_t, 10, 15, false>;
using __nv_fp8_e4m3 = host::Small<uint8_t, 3, 7, true>;

inline void __syncthreads() { host::wait(); }
template <typename T> T __shfl_xor_sync(unsigned, T value, int mask) {
    std::memcpy(host::lanes[threadIdx.x], &value, sizeof(T));
    host::wait();
    T other;
    std::memcpy(&other, host::lanes[threadIdx.x ^ mask], sizeof(T));
    host::wait();
    return other;
}
inline float rsqrtf(float value) { return 1.0f / sqrtf(value); }
inline double rsqrt(double value) { return 1.0 / sqrt(value); }
