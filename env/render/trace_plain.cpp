#include "env/render/trace_rows.h"

namespace troupe::env {

void trace_plain(const TracePicture& picture) { trace_rows(picture); }

}  // namespace troupe::env
