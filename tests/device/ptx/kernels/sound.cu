// Kernels without a fault, one for each way our kernels use a GPU: whatever the order of threads, the interpreter must
// find nothing and the results must be right.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace troupe::device::ptx {
namespace {

constexpr unsigned kAll = 0xFFFFFFFFu;

__device__ float warp_sum(float x) {
  for (int by = 16; by > 0; by /= 2) x += __shfl_xor_sync(kAll, x, by);
  return x;
}

struct Box {
  float2 corner;
  std::int32_t counts[5];
  double scale;
};

__device__ __noinline__ Box grown(Box box, float by) {
  box.corner.x -= by;
  box.corner.y += by;
  for (int i = 0; i < 5; ++i) box.counts[i] += i;
  return box;
}

__device__ __noinline__ float twice_grown(const Box& box, float by) {
  const Box larger = grown(grown(box, by), by);
  return larger.corner.y - larger.corner.x + static_cast<float>(larger.counts[4]);
}

__device__ void copy_async(void* to, const void* from) {
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
}

__constant__ float kWeights[4] = {0.5f, 1.0f, 1.5f, 2.0f};
__device__ unsigned bumped = 7;

}  // namespace

extern "C" {

/// Sums 256 values a block: lanes by shuffles, warps through shared memory.
__global__ void sum_by_shuffle(const float* x, float* out, std::int64_t n) {
  __shared__ float of_warp[8];
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  float sum = warp_sum(i < n ? x[i] : 0.0f);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = warp_sum(threadIdx.x < 8 ? of_warp[threadIdx.x] : 0.0f);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
  }
}

/// The same by a tree in shared memory.
__global__ void sum_by_tree(const float* x, float* out, std::int64_t n) {
  extern __shared__ float tree[];
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  tree[threadIdx.x] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) tree[threadIdx.x] += tree[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = tree[0];
}

/// Transposes 32x32 tiles by 32x8 threads; the padded form has no bank conflict, the plain one 31 an access.
__global__ void transpose_padded(const float* x, float* out, int rows, int columns) {
  __shared__ float tile[32][33];
  int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) {
    if (row + j < rows && column < columns) tile[threadIdx.y + j][threadIdx.x] = x[(row + j) * columns + column];
  }
  __syncthreads();
  column = blockIdx.y * 32 + threadIdx.x;
  row = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) {
    if (row + j < columns && column < rows) out[(row + j) * rows + column] = tile[threadIdx.x][threadIdx.y + j];
  }
}
__global__ void transpose_plain(const float* x, float* out, int rows, int columns) {
  __shared__ float tile[32][32];
  int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) {
    if (row + j < rows && column < columns) tile[threadIdx.y + j][threadIdx.x] = x[(row + j) * columns + column];
  }
  __syncthreads();
  column = blockIdx.y * 32 + threadIdx.x;
  row = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) {
    if (row + j < columns && column < rows)
      out[(row + j) * rows + column] = tile[threadIdx.x][threadIdx.y + j];  // conflicts
  }
}

/// Sums `steps` rows of 512 floats, the next row on its way while the last is added. 128 threads.
__global__ void sum_rows_async(const float4* rows, float4* out, int steps) {
  __shared__ float4 buffer[2][128];
  float4 sum = make_float4(0, 0, 0, 0);
  copy_async(&buffer[0][threadIdx.x], rows + threadIdx.x);
  asm volatile("cp.async.commit_group;" ::: "memory");
  for (int step = 0; step < steps; ++step) {
    if (step + 1 < steps) copy_async(&buffer[(step + 1) % 2][threadIdx.x], rows + (step + 1) * 128 + threadIdx.x);
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    const float4 v = buffer[step % 2][127 - threadIdx.x];  // another thread's
    sum.x += v.x;
    sum.y += v.y;
    sum.z += v.z;
    sum.w += v.w;
    __syncthreads();
  }
  out[blockIdx.x * 128 + threadIdx.x] = sum;
}

/// C[16, 8] = A[16, 16 * steps] B[8, 16 * steps]^T of bf16 in f32. One warp; rows 24 elements apart in shared memory.
__global__ void tile_product(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c, int steps) {
  __shared__ __align__(16) __nv_bfloat16 tile_a[16][24], tile_b[8][24];
  const int lane = threadIdx.x, k = 16 * steps;
  float d[4] = {};
  for (int step = 0; step < steps; ++step) {
    const int row = lane / 2, at = lane % 2 * 8;
    *reinterpret_cast<uint4*>(&tile_a[row][at]) = *reinterpret_cast<const uint4*>(a + row * k + step * 16 + at);
    if (row < 8)
      *reinterpret_cast<uint4*>(&tile_b[row][at]) = *reinterpret_cast<const uint4*>(b + row * k + step * 16 + at);
    __syncwarp();
    unsigned ra[4], rb[2];
    const auto from_a = static_cast<unsigned>(__cvta_generic_to_shared(&tile_a[lane % 16][lane / 16 * 8]));
    const auto from_b = static_cast<unsigned>(__cvta_generic_to_shared(&tile_b[lane % 8][lane / 8 % 2 * 8]));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3])
                 : "r"(from_a));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(rb[0]), "=r"(rb[1]) : "r"(from_b));
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
    __syncwarp();
  }
  float2* rows = reinterpret_cast<float2*>(c);
  rows[(lane / 4) * 4 + lane % 4] = make_float2(d[0], d[1]);
  rows[(lane / 4 + 8) * 4 + lane % 4] = make_float2(d[2], d[3]);
}

/// A struct by value whose array is read at a place that only runs know, and functions that are not inlined.
__global__ void struct_by_value(Box box, float* out) {
  const float size = twice_grown(box, 1.0f + static_cast<float>(threadIdx.x));
  out[threadIdx.x] = size * static_cast<float>(box.scale) + static_cast<float>(box.counts[threadIdx.x % 5]);
}

/// Lanes part in loops of different length, meet in shuffles, and leave one after another.
__global__ void collatz(const unsigned* start, unsigned* steps, unsigned* longest, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned long long x = start[i];
  unsigned count = 0;
  while (x > 1) {
    if (x % 2 == 0) {
      x /= 2;
    } else {
      x = 3 * x + 1;
    }
    ++count;
  }
  steps[i] = count;
  atomicMax(longest, count);
}

/// Halves of a warp do different things, each with shuffles of its own.
__global__ void halves(const int* x, int* out) {
  const int lane = threadIdx.x % 32;
  int v = x[threadIdx.x];
  if (lane < 16) {
    for (int by = 8; by > 0; by /= 2) v += __shfl_down_sync(0x0000FFFFu, v, by, 16);
  } else {
    for (int by = 1; by < 16; by *= 2) {
      const int other = __shfl_up_sync(0xFFFF0000u, v, by, 16);
      if (lane - 16 >= by) v += other;
    }
  }
  __syncwarp();
  out[threadIdx.x] = __shfl_sync(kAll, v, lane ^ 16);
}

/// Two warps fill what two others empty, by barriers with numbers and counts.
__global__ void hand_over(const float* x, float* out, int rounds) {
  __shared__ float slot[64];
  const int warp = threadIdx.x / 32, i = threadIdx.x % 64;
  for (int round = 0; round < rounds; ++round) {
    if (warp < 2) {
      asm volatile("bar.sync 2, 128;" ::: "memory");
      slot[i] = x[round * 64 + i];
      asm volatile("bar.arrive 1, 128;" ::: "memory");
    } else {
      asm volatile("bar.arrive 2, 128;" ::: "memory");
      asm volatile("bar.sync 1, 128;" ::: "memory");
      out[round * 64 + i] = 2.0f * slot[i ^ 33];
    }
  }
}

/// Counts bytes in 16 classes.
__global__ void histogram(const std::uint8_t* x, unsigned* out, int n) {
  __shared__ unsigned counts[16];
  if (threadIdx.x < 16) counts[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&counts[x[i] / 16], 1u);
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(out + threadIdx.x, counts[threadIdx.x]);
}

__global__ void half_pairs(const __half2* x, const __nv_bfloat162* y, __half2* hx, __nv_bfloat162* by, float* sums) {
  const int i = threadIdx.x;
  const __half2 a = x[i], b = x[i + 32];
  hx[i] = __hmax2(__hfma2(a, b, a), __hsub2(a, b));
  const __nv_bfloat162 c = y[i], d = y[i + 32];
  by[i] = __hmin2(__hfma2(c, d, c), __hmul2(c, d));
  const float2 f = __bfloat1622float2(c), g = __half22float2(a);
  sums[i] = f.x + f.y + g.x + g.y + (a.x > b.x ? 1.0f : 0.0f);
}

/// Copies rows whose last bytes do not exist: the copy reads what there is and fills up with zeros. 32 threads.
__global__ void filled_up(const float* x, float4* out, int n) {
  __shared__ float4 s[32];
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(&s[threadIdx.x]));
  const int left = max(0, min(4, n - 4 * static_cast<int>(threadIdx.x)));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(x + (left > 0 ? 4 * threadIdx.x : 0)),
               "r"(4 * left)
               : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  out[threadIdx.x] = s[threadIdx.x];
}

/// What lanes say of each other.
__global__ void votes(const int* x, unsigned* out) {
  const int v = x[threadIdx.x];
  const unsigned odd = __ballot_sync(kAll, v % 2 != 0);
  out[threadIdx.x] = odd + (__any_sync(kAll, v == 3) ? 1u << 30 : 0) + (__all_sync(kAll, v < 3) ? 1u << 31 : 0) +
                     __popc(__activemask()) + static_cast<unsigned>(__clz(v));
}

/// Reads through pointers whose space only runs know.
__global__ void any_space(const float* x, float* out) {
  __shared__ float s[32];
  float mine[2] = {x[threadIdx.x] + 1.0f, x[threadIdx.x] + 2.0f};
  s[threadIdx.x] = 10.0f * x[threadIdx.x];
  __syncwarp();
  const float* from = threadIdx.x % 3 == 0   ? x + threadIdx.x
                      : threadIdx.x % 3 == 1 ? s + (threadIdx.x ^ 1)
                                             : mine + (threadIdx.x & 1);
  out[threadIdx.x] = *from;
}

/// A jump by a table, constants at a place that only runs know, and a count of threads at a barrier.
__global__ void choices(const int* which, float* out, int n) {
  const int i = threadIdx.x;
  float v = kWeights[which[i] & 3] + static_cast<float>(bumped);
  switch (which[i]) {
    case 0:
      v = sqrtf(v);
      break;
    case 1:
      v = v / 3.0f;
      break;
    case 2:
      v = __expf(v);
      break;
    case 3:
      v = logf(v);
      break;
    case 4:
      v = tanhf(v);
      break;
    case 5:
      v = sinf(v);
      break;
    default:
      v = -v;
      break;
  }
  out[i] = v + static_cast<float>(__syncthreads_count(which[i] < n));
}
}

}  // namespace troupe::device::ptx
