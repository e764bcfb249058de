#include "tests/device/ptx/memory_access.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace troupe::device::ptx {
namespace {

template <class F>
void for_each_lane(std::uint32_t lanes, F f) {
  for (; lanes != 0; lanes &= lanes - 1) f(static_cast<std::uint32_t>(std::countr_zero(lanes)));
}

/// Copies `size` bytes, a size known to be one of five.
void copy_bytes(std::byte* to, const std::byte* from, std::uint32_t size) {
  switch (size) {
    case 1:
      *to = *from;
      break;
    case 2:
      std::memcpy(to, from, 2);
      break;
    case 4:
      std::memcpy(to, from, 4);
      break;
    case 8:
      std::memcpy(to, from, 8);
      break;
    default:
      std::memcpy(to, from, 16);
      break;
  }
}

bool writes(AccessKind kind) { return kind == AccessKind::write || kind == AccessKind::atomic; }
bool reads(AccessKind kind) { return kind != AccessKind::write; }

/// Lane i is `size` bytes behind lane i - 1.
bool is_contiguous(const Access& access) {
  if (access.lanes != kAllLanes) return false;
  std::uint64_t different = 0;
  for (std::uint64_t i = 0; i < kLanes; ++i) different |= access.address[i] ^ (access.address[0] + i * access.size);
  return different == 0;
}

/// Distinct addresses and sectors of 32 bytes, of accesses that do not cross one.
void count_sectors(Counts& counts, const Access& access, std::uint32_t lanes, bool contiguous) {
  if (contiguous) {
    const std::uint64_t first = access.address[0], end = first + std::uint64_t{kLanes} * access.size;
    counts.sectors += (end - 1) / 32 - first / 32 + 1;
    counts.bytes += end - first;
    return;
  }
  std::uint64_t sorted[kLanes];
  std::size_t n = 0;
  for_each_lane(lanes, [&](std::uint32_t lane) { sorted[n++] = access.address[lane]; });
  if (!std::is_sorted(sorted, sorted + n)) std::sort(sorted, sorted + n);
  std::uint64_t last = ~std::uint64_t{0}, sector = ~std::uint64_t{0};
  for (std::size_t i = 0; i < n; ++i) {
    if (sorted[i] != last) counts.bytes += access.size;
    if (sorted[i] / 32 != sector) ++counts.sectors;
    last = sorted[i];
    sector = sorted[i] / 32;
  }
}

/// Wavefronts of an access to 32 banks of 4 bytes: lanes of a warp together up to 4 bytes, by halves for 8, by quarters
/// for 16; in each as many as one bank has different words.
void count_wavefronts(Counts& counts, const Access& access, std::uint32_t lanes) {
  const std::uint32_t parts = access.size <= 4 ? 1 : access.size / 4, part_lanes = kLanes / parts;
  for (std::uint32_t part = 0; part < parts; ++part) {
    std::uint32_t words[kLanes], n = 0;
    const std::uint32_t mask = parts == 1 ? lanes : lanes >> (part * part_lanes) & ((1U << part_lanes) - 1);
    for_each_lane(mask, [&](std::uint32_t lane) {
      const auto word = static_cast<std::uint32_t>(access.address[part * part_lanes + lane] / 4);
      for (std::uint32_t k = 0; k < (access.size + 3) / 4; ++k) words[n++] = word + k;
    });
    if (n == 0) continue;
    if (!std::is_sorted(words, words + n)) std::sort(words, words + n);
    std::uint8_t in_bank[32] = {}, most = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      if (i == 0 || words[i] != words[i - 1]) most = std::max(most, ++in_bank[words[i] % 32]);
    }
    counts.wavefronts += most;
    counts.conflicts += most - 1U;
  }
}

/// Reports and takes away the lanes whose address is no multiple of the size.
void check_alignment(WarpState& warp, const Op& op, Access& access) {
  std::uint64_t low = 0;
  for (int i = 0; i < kLanes; ++i) low |= (access.lanes >> i & 1) != 0 ? access.address[i] : 0;
  if ((low & (access.size - 1)) == 0) return;
  std::uint32_t wrong = 0;
  for_each_lane(access.lanes, [&](std::uint32_t lane) {
    if ((access.address[lane] & (access.size - 1)) != 0) wrong |= 1U << lane;
  });
  warp.report(FindingKind::misaligned, op, wrong, fmt::format("an access of {} bytes", access.size),
              access.address[std::countr_zero(wrong)]);
  access.lanes &= ~wrong;
}

/// Lanes whose bytes lie inside the allocation.
std::uint32_t lanes_inside(const Access& access, std::uint32_t lanes, const Allocation& allocation) {
  std::uint32_t inside = 0;
  if (allocation.size < access.size) return 0;
  const std::uint64_t most = allocation.size - access.size;
  for (int i = 0; i < kLanes; ++i) inside |= access.address[i] - allocation.address <= most ? 1U << i : 0U;
  return inside & lanes;
}

std::string_view verb(AccessKind kind) { return writes(kind) ? "writes" : "reads"; }

/// Lanes of one allocation: initialisation, races between blocks, counters.
void locate_in(WarpState& warp, const Op& op, Access& access, std::uint32_t lanes, Allocation& allocation,
               bool contiguous) {
  LaunchState& launch = *warp.block->launch;
  if (allocation.is_constant && writes(access.kind)) {
    warp.report(FindingKind::read_only_written, op, lanes, "constant memory", access.address[std::countr_zero(lanes)],
                &allocation);
    return;
  }
  const std::uint32_t block = warp.block->number + 1, granule = launch.shadow.granule();
  GlobalShadow::Cell* cells = launch.shadow.cells(allocation);
  std::uint32_t unwritten = 0, raced = 0, read_only = 0;
  const auto check = [&](std::uint32_t lane, std::uint64_t offset, std::uint64_t bytes) {
    if (reads(access.kind) && !allocation.is_written(offset, bytes)) {
      for (std::uint64_t at = 0; at < bytes; at += access.size) {
        if (!allocation.is_written(offset + at, access.size)) unwritten |= 1U << (lane + at / access.size);
      }
    }
    std::uint32_t wrong = 0;
    const std::uint64_t end = (offset + bytes + (1U << granule) - 1) >> granule;
    for (std::uint64_t i = offset >> granule; i < end; ++i) {
      wrong |= writes(access.kind) ? GlobalShadow::write(cells[i], block, access.kind == AccessKind::atomic)
                                   : GlobalShadow::read(cells[i], block, access.kind == AccessKind::read_only);
    }
    if ((wrong & GlobalShadow::kRace) != 0) raced |= 1U << lane;
    if ((wrong & GlobalShadow::kReadOnlyWritten) != 0) read_only |= 1U << lane;
    if (writes(access.kind)) allocation.mark_written(offset, bytes);
  };
  std::byte* base = allocation.bytes - allocation.address;
  for (int i = 0; i < kLanes; ++i) access.at[i] = (lanes >> i & 1) != 0 ? base + access.address[i] : access.at[i];
  if (contiguous) {
    check(0, access.address[0] - allocation.address, std::uint64_t{kLanes} * access.size);
  } else {
    std::uint64_t last = ~std::uint64_t{0};
    for_each_lane(lanes, [&](std::uint32_t lane) {
      if (access.address[lane] != last) check(lane, access.address[lane] - allocation.address, access.size);
      last = access.address[lane];
    });
  }
  count_sectors(launch.counts[op.index], access, lanes, contiguous);
  if ((unwritten | raced | read_only) == 0) return;
  const auto report = [&](FindingKind kind, std::uint32_t wrong, std::string_view text) {
    if (wrong != 0) warp.report(kind, op, wrong, text, access.address[std::countr_zero(wrong)], &allocation);
  };
  report(FindingKind::uninitialised_memory, unwritten,
         fmt::format("reads {} bytes that were never written", access.size));
  report(FindingKind::global_race, raced, fmt::format("{} what another block wrote or read", verb(access.kind)));
  report(FindingKind::read_only_written, read_only, "memory that this launch also reads as read-only");
}

void locate_global(WarpState& warp, const Op& op, Access& access) {
  DeviceMemory& memory = *warp.block->launch->memory;
  const bool contiguous = is_contiguous(access);
  for (std::uint32_t rest = access.lanes; rest != 0;) {
    const auto first = static_cast<std::uint32_t>(std::countr_zero(rest));
    Allocation* allocation = memory.find(access.address[first]);
    std::uint32_t inside = allocation == nullptr ? 0 : lanes_inside(access, rest, *allocation);
    if ((inside >> first & 1) == 0) {
      const bool is_between = allocation != nullptr;
      warp.report(FindingKind::out_of_bounds, op, 1U << first,
                  fmt::format("{} {} bytes {}", verb(access.kind), access.size,
                              is_between ? "beside the allocation" : "of no allocation"),
                  access.address[first], allocation);
      inside = 1U << first;
    } else if (allocation->is_freed) {
      warp.report(FindingKind::use_after_free, op, inside, "the allocation is freed", access.address[first],
                  allocation);
    } else {
      locate_in(warp, op, access, inside, *allocation, contiguous && inside == kAllLanes);
    }
    rest &= ~inside;
  }
}

void locate_shared(WarpState& warp, const Op& op, Access& access) {
  BlockState& block = *warp.block;
  std::uint32_t outside = 0, wrong[3] = {};
  if (access.flags != SharedShadow::kLanding) count_wavefronts(block.launch->counts[op.index], access, access.lanes);
  const std::uint32_t granule = block.shadow.granule();
  const std::uint32_t step = std::min(1U << granule, access.size);
  for_each_lane(access.lanes, [&](std::uint32_t lane) {
    const std::uint64_t offset = access.address[lane];
    if (offset + access.size > block.shared_bytes) {
      outside |= 1U << lane;
      return;
    }
    std::byte* at = block.shared.data() + offset;
    access.at[lane] = at;
    const auto now = block.shadow.record(warp.index, lane, warp.stamp);
    const std::byte* data = access.data + lane * access.size;
    std::uint32_t all = 0;
    for (std::uint32_t i = 0; i < access.size; i += step) {
      SharedShadow::Cell& cell = block.shadow.cell(static_cast<std::uint32_t>(offset) + i);
      if (!writes(access.kind)) {
        all |= block.shadow.read(cell, now);
      } else if (access.kind == AccessKind::atomic) {
        // an atomic reads too: bytes that were never written are found; then it is a write, in order with other atomics
        if (!block.shadow.is_written(cell)) all |= SharedShadow::kUnwritten;
        all |= block.shadow.write(cell, now, true, SharedShadow::kAtomic);
      } else {
        all |= block.shadow.write(cell, now, std::memcmp(at + i, data + i, step) != 0, access.flags);
      }
    }
    // bytes are stored at once, so that the next lane of the same instruction sees what it overwrites
    if (access.kind == AccessKind::write && (access.flags & SharedShadow::kPending) == 0)
      copy_bytes(at, data, access.size);
    for (int i = 0; i < 3; ++i) wrong[i] |= (all >> i & 1) << lane;
  });
  if ((outside | wrong[0] | wrong[1] | wrong[2]) == 0) return;
  const auto report = [&](FindingKind kind, std::uint32_t lanes, std::string_view text) {
    if (lanes != 0) warp.report(kind, op, lanes, text, access.address[std::countr_zero(lanes)]);
  };
  report(FindingKind::out_of_bounds, outside,
         fmt::format("{} {} bytes outside the block's {} bytes of shared memory", verb(access.kind), access.size,
                     block.shared_bytes));
  report(
      FindingKind::shared_race, wrong[0],
      fmt::format("{} what another thread wrote or read, without a synchronisation between them", verb(access.kind)));
  report(FindingKind::uninitialised_memory, wrong[1], "reads shared memory that this block did not write");
  report(FindingKind::async_not_waited, wrong[2], fmt::format("{} what a cp.async may still write", verb(access.kind)));
}

void locate_local(WarpState& warp, const Op& op, Access& access) {
  const std::uint32_t bytes = warp.block->launch->kernel->local_bytes;
  std::uint32_t outside = 0, unwritten = 0;
  for_each_lane(access.lanes, [&](std::uint32_t lane) {
    const std::uint64_t offset = access.address[lane];
    if (offset + access.size > bytes) {
      outside |= 1U << lane;
      return;
    }
    access.at[lane] = warp.local + std::size_t{lane} * bytes + offset;
    std::uint8_t* written = warp.local_written + std::size_t{lane} * bytes + offset;
    if (writes(access.kind)) {
      std::memset(written, 1, access.size);
    } else if (std::find(written, written + access.size, 0) != written + access.size) {
      unwritten |= 1U << lane;
    }
  });
  const auto report = [&](FindingKind kind, std::uint32_t lanes, std::string_view text) {
    if (lanes != 0) warp.report(kind, op, lanes, text, access.address[std::countr_zero(lanes)]);
  };
  report(FindingKind::out_of_bounds, outside, "outside the thread's local memory");
  report(FindingKind::uninitialised_memory, unwritten, "reads local memory that this thread did not write");
}

void locate_parameter(WarpState& warp, const Op& op, Access& access) {
  const auto parameters = warp.block->launch->parameters;
  for_each_lane(access.lanes, [&](std::uint32_t lane) {
    if (writes(access.kind) || access.address[lane] + access.size > parameters.size()) {
      warp.report(FindingKind::out_of_bounds, op, 1U << lane, "outside the parameters, or a write to them",
                  access.address[lane]);
    } else {
      access.at[lane] = const_cast<std::byte*>(parameters.data() + access.address[lane]);
    }
  });
}

/// Lanes by the window of their generic address.
void locate_generic(WarpState& warp, const Op& op, Access& access) {
  constexpr Space kWindows[] = {Space::global, Space::shared, Space::local, Space::param};
  const std::uint32_t lanes = access.lanes;
  for (std::uint64_t number = 0; number < 4; ++number) {
    access.lanes = 0;
    for_each_lane(lanes, [&](std::uint32_t lane) {
      if (access.address[lane] >> 60 == number) access.lanes |= 1U << lane;
    });
    if (access.lanes == 0) continue;
    access.space = kWindows[number];
    for_each_lane(access.lanes, [&](std::uint32_t lane) { access.address[lane] -= number << 60; });
    locate(warp, op, access);
  }
  access.lanes = lanes;
  access.space = Space::generic;
}

}  // namespace

void locate(WarpState& warp, const Op& op, Access& access) {
  if (access.space != Space::generic) check_alignment(warp, op, access);
  switch (access.space) {
    case Space::generic:
      return locate_generic(warp, op, access);
    case Space::global:
    case Space::constant:
      return locate_global(warp, op, access);
    case Space::shared:
      return locate_shared(warp, op, access);
    case Space::local:
      return locate_local(warp, op, access);
    case Space::param:
      return locate_parameter(warp, op, access);
    case Space::reg:
      return;
  }
}

void perform(WarpState& warp, const Op& op, Access& access) {
  std::memset(access.at, 0, sizeof access.at);
  const std::uint32_t lanes = access.lanes;
  locate(warp, op, access);
  const bool contiguous = access.lanes == kAllLanes && access.at[0] != nullptr && is_contiguous(access) &&
                          access.at[kLanes - 1] == access.at[0] + (kLanes - 1) * access.size;
  if (access.kind == AccessKind::write) {
    if (contiguous) {
      std::memcpy(access.at[0], access.data, kLanes * access.size);
      return;
    }
    for_each_lane(lanes, [&](std::uint32_t lane) {
      if (access.at[lane] != nullptr) copy_bytes(access.at[lane], access.data + lane * access.size, access.size);
    });
    return;
  }
  if (contiguous) {
    std::memcpy(access.data, access.at[0], kLanes * access.size);
    return;
  }
  for_each_lane(lanes, [&](std::uint32_t lane) {
    static constexpr std::byte kZeros[16] = {};
    copy_bytes(access.data + lane * access.size, access.at[lane] != nullptr ? access.at[lane] : kZeros, access.size);
  });
}

void read_addresses(WarpState& warp, const Op& op, const AddressPart& part, Access& access) {
  const std::size_t ref = part.ref;
  const std::uint32_t width = part.width;
  const auto offset = static_cast<std::uint64_t>(part.offset);
  if (width == 0) {
    for (int i = 0; i < kLanes; ++i) access.address[i] = offset;
    return;
  }
  warp.require_written(op, op.refs[ref]);
  if (width == 8) {
    const auto* base = warp.values<std::uint64_t>(op.refs[ref]);
    for (int i = 0; i < kLanes; ++i) access.address[i] = base[i] + offset;
  } else {
    const auto* base = warp.values<std::uint32_t>(op.refs[ref]);
    for (int i = 0; i < kLanes; ++i) access.address[i] = static_cast<std::uint32_t>(base[i] + offset);
  }
}

}  // namespace troupe::device::ptx
