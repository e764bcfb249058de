#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/adamw_update.h"
#include "kernels/element.h"

namespace troupe::kernels::cuda {

/// One update of a run of parameters, and their bf16 copy for what computes with them:
///     g = grad * scale;  m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
///     p = p * keep - step * m / (sqrt(v) / root + eps);  published = bf16(p)
///
/// Shapes: param and grad f32, m and v of type Moment (float or simd::Bf16), `published` bf16 or null, all [count];
///         update, one f32 `grad_scale` and one i32 `skip` in device memory.
/// Does nothing where *skip is not 0. Bits: those of the host form.
/// Stream: enqueues one kernel; never waits. Errors: cudaGetLastError().
template <class Moment>
cudaError_t launch_adamw(float* param, Moment* m, Moment* v, const float* grad, simd::Bf16* published,
                         std::int64_t count, const AdamWUpdate* update, const float* grad_scale,
                         const std::int32_t* skip, cudaStream_t stream);

/// One step of a moving average: average = keep * average + share * x. Does nothing where *skip is not 0.
///
/// Shapes: average and x f32 [count]; skip, one i32 of the device.
/// Bits: those of the host form (model/optim/moving_average.h).
/// Stream: enqueues one kernel; never waits. Errors: cudaGetLastError().
cudaError_t launch_moving_average(float* average, const float* x, std::int64_t count, float keep, float share,
                                  const std::int32_t* skip, cudaStream_t stream);

/// Bytes of scratch of launch_sum_of_squares: one f64 for each 524,288 values.
std::int64_t sum_of_squares_scratch_bytes(std::int64_t count);

/// *sum = sum of x^2 in f64, in the order of the host form (model/optim/adamw.h): blocks of 1,024 in eight lanes, runs
/// of 512 blocks, then the runs. The same bits as there.
/// Stream: enqueues two kernels; never waits. Errors: cudaGetLastError().
cudaError_t launch_sum_of_squares(const float* x, std::int64_t count, double* sum, void* scratch, cudaStream_t stream);

/// The sum over ranks of what each of them contributed, in rank order (kernels/rank_sum.h): the same bits.
/// Stream: enqueues one kernel; never waits. Errors: cudaGetLastError().
cudaError_t launch_rank_sum(float* out, const float* parts, std::int64_t ranks, std::int64_t count, bool add,
                            cudaStream_t stream);

}  // namespace troupe::kernels::cuda
