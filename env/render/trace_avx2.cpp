#include "env/render/trace_rows.h"

namespace troupe::env {

void trace_avx2(const TraceImage& image) { trace_rows(image); }

}  // namespace troupe::env
