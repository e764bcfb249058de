"""What scripts/kernel-table reads from objects, computes and refuses, on objects that are made here.

  python3 -B -m unittest tests/scripts/kernel_table_test.py
"""
import contextlib
import importlib.machinery
import importlib.util
import io
import pathlib
import struct
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("kernel_table", str(ROOT / "scripts" / "kernel-table"))
table = importlib.util.module_from_spec(importlib.util.spec_from_loader("kernel_table", loader))
loader.exec_module(table)

COPY = "_ZN6troupe12_GLOBAL__N_14copyILi4EfEEvPT0_"  # void troupe::(anonymous namespace)::copy<4, float>(float*)
PTX = """
.version 9.0
.target sm_90
.address_size 64

.entry {name}(
.param .u64 {name}_param_0
)
.maxntid 256, 1, 1
{{
.local .align 8 .b8 __local_depot0[{arrays}];
.reg .b32 %r<3>;
.loc 1 18 0
ld.param.u64 %rd1, [{name}_param_0];
$L__BB0_2:
.pragma "nounroll";
{{ // begin inline asm
ld.global.nc.v4.f32 {{%f1,%f2,%f3,%f4}}, [%rd1];
}}
{{ cvt.rn.bf16.f32 %rs1, %f1;}}
@!%p1 st.shared.f32 [%r1], %f1; fma.rn.f32 %f5, %f1, %f2,
  %f3;
@%p1 bra $L__BB0_2;
ret;
}}
"""


def elf(sections):
    """A 64-bit ELF file of (name, bytes or a size without bytes, link)."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name, *_ in sections) + b".shstrtab\0"
    body, headers = bytearray(64), [bytes(64)]
    for name, content, link in [*sections, (".shstrtab", names, 0)]:
        kind, size = (8, content) if isinstance(content, int) else (1, len(content))
        name_at = names.index(name.encode() + b"\0")
        headers.append(struct.pack("<IIQQQQIIQQ", name_at, kind, 0, 0, len(body), size, link, 0, 1, 0))
        body += b"" if kind == 8 else content
    body[:5] = b"\x7fELF\x02"
    struct.pack_into("<Q", body, 40, len(body))
    struct.pack_into("<HHH", body, 58, 64, len(headers), len(headers) - 1)
    return bytes(body) + b"".join(headers)


def cubin(name, registers, stack=0, shared=0, threads=256):
    """One kernel, symbol 1 of the table."""
    strings = b"\0" + name.encode() + b"\0"
    symbols = bytes(24) + struct.pack("<I20x", 1)
    info = b"".join(struct.pack("<BBHII", 4, attribute, 8, 1, value)
                    for attribute, value in ((0x2f, registers), (0x11, stack), (0x12, stack)))
    own = struct.pack("<BBH", 3, 0x19, 48)
    own += struct.pack("<BBHIII", 4, 0x05, 12, threads, 1, 1) if threads else b""
    sections = [(".strtab", strings, 0), (".symtab", symbols, 1), (".nv.info", info, 0), (".nv.info." + name, own, 0),
                (".text." + name, b"code", 0)]
    return elf(sections + ([(".nv.shared." + name, shared, 0)] if shared else []))


def an_object(of_arch, ptx):
    """An object whose fat binary has a cubin for each architecture, and PTX."""
    entries = b""
    for kind, arch, body in [(2, arch, body) for arch, body in of_arch.items()] + [(1, 90, ptx.encode() + b"\0")]:
        body += bytes(-len(body) % 8)
        entries += struct.pack("<HHIQQII", kind, 0x101, 64, len(body), 0, 0, arch) + bytes(32) + body
    return elf([(".nv_fatbin", struct.pack("<IHHQ", 0xba55ed50, 1, 16, len(entries)) + entries, 0)])


class TreeTest(unittest.TestCase):
    """A tree of one source besides image_chain.cu, whose objects a test writes."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for made in ("kernels/cuda", "build/kernels", "docs"):
            (self.root / made).mkdir(parents=True)
        (self.root / "kernels/cuda/copy.cu").touch()
        patch = mock.patch.object(table, "ROOT", str(self.root))
        patch.start()
        self.addCleanup(patch.stop)
        self.write("image_chain", name="_Z12finish_tilesv", threads=0)
        self.write("copy")

    def write(self, source, name=COPY, arrays=0, ptx_name=None, stack=0, **figures):
        ptx = PTX.format(name=ptx_name or name, arrays=arrays)
        shared = figures.pop("shared", 0)
        of_arch = {80: cubin(name, 40, stack, shared, **figures), 89: cubin(name, 42, stack, shared, **figures),
                   90: cubin(name, 72, stack, shared + 1024 if shared else 0, **figures)}
        (self.root / f"build/kernels/{source}.cu.o").write_bytes(an_object(of_arch, ptx))

    def run_main(self, *arguments):
        """Exit code and what was printed."""
        printed = io.StringIO()
        words = ["kernel-table", "--build", str(self.root / "build"), *arguments]
        with mock.patch.object(sys, "argv", words):
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                return table.main(), printed.getvalue()

    def page(self):
        return (self.root / table.PAGE).read_text()

    def test_PageHasTheFiguresOfEachArchitecture(self):
        self.write("copy", shared=2048, stack=8, arrays=8)
        self.assertEqual(self.run_main()[0], 0)
        self.assertIn("| `copy<4, float>` | 256 | 40 / 42 / 72 | 8 | 2,048 | 6 / 5 / 3 | 48 / 40 / 24 | registers | "
                      "75 / 83 / 38 % |", self.page())
        self.assertIn("| `copy<4, float>` | 0 | 1 | 0 | 0 | 0 | 1 | 1 x 16 | 0 | 1 | 0 | 0 | 1 | 2 |", self.page())

    def test_CheckPassesOnWhatWasWritten(self):
        self.run_main()
        self.assertEqual(self.run_main("--check"), (0, f"kernel-table: {table.PAGE}: ok\n"))

    def test_CheckNamesTheRowThatDiffersAndWritesNothing(self):
        self.run_main()
        before = self.page()
        self.write("copy", shared=512)
        code, printed = self.run_main("--check")
        self.assertEqual(code, 1)
        self.assertIn("+| `copy<4, float>` | 256 | 40 / 42 / 72 | 0 | 512 |", printed)
        self.assertTrue(printed.endswith("is out of date; run: scripts/kernel-table --build build\n"), printed)
        self.assertEqual(self.page(), before)

    def test_KernelThatThePageLacksFailsTheCheck(self):
        self.run_main()
        (self.root / "kernels/cuda/more.cu").touch()
        self.write("more", name="_Z4morev")
        code, printed = self.run_main("--check")
        self.assertEqual(code, 1)
        self.assertIn("+| `more` |", printed)

    def test_CheckWithoutAPageFails(self):
        self.assertEqual(self.run_main("--check")[0], 1)

    def test_StackBeyondTheArraysIsASpill(self):
        self.run_main()
        self.write("copy", stack=24, arrays=16)
        for arguments in ([], ["--check"]):
            code, printed = self.run_main(*arguments)
            self.assertEqual(code, 1)
            self.assertIn("copy<4, float>: sm_80 has 24 bytes of stack, its arrays need 16", printed)

    def test_MissingObjectIsNamed(self):
        (self.root / "build/kernels/copy.cu.o").unlink()
        code, printed = self.run_main("--check")
        self.assertEqual(code, 1)
        self.assertIn("copy.cu.o is missing; build it with scripts/build", printed)

    def test_KernelWithoutBoundsThatNobodyKnowsIsRefused(self):
        self.write("copy", threads=0)
        self.assertIn("copy<4, float> has no launch bounds", self.run_main()[1])

    def test_ArchitecturesWithDifferentKernelsAreRefused(self):
        self.write("copy", ptx_name="_Z5otherv")
        self.assertIn("the architectures have different kernels", self.run_main()[1])

    def test_MissingArchitectureIsRefused(self):
        only = an_object({80: cubin(COPY, 40)}, PTX.format(name=COPY, arrays=0))
        (self.root / "build/kernels/copy.cu.o").write_bytes(only)
        self.assertIn("has code for [80]; expected [80, 89, 90]", self.run_main()[1])

    def test_KernelsWithEqualFiguresShareARowAndAreAllNamed(self):
        kernels, _ = table.read_build(str(self.root / "build"))
        copy = next(kernel for kernel in kernels if kernel.name == "copy<4, float>")
        others = [copy._replace(name=name) for name in ("copy<16, float>", "copy<8, float>", "paste<8, float>")]
        rows = table.table([copy] + others, ["threads"], lambda kernel: [str(kernel.threads)]).splitlines()[2:]
        self.assertEqual(rows, ["| `copy<4, float>`, `<8, float>`, `<16, float>` | 256 |",
                                "| `paste<8, float>` | 256 |"])


class OccupancyTest(unittest.TestCase):
    """As NVIDIA's cuda_occupancy.h of CUDA 13.0 says for the same figures."""

    def test_EachBound(self):
        for figures, expected in {
            (80, 256, 32, 0): (8, 64, "warps"),
            (89, 256, 32, 0): (6, 48, "warps"),
            (90, 32, 16, 0): (32, 32, "blocks"),
            (89, 1, 16, 0): (24, 24, "blocks"),
            (90, 128, 188, 49152): (2, 8, "registers"),
            (90, 640, 96, 512 + 81920): (1, 20, "registers"),
            (89, 640, 48, 256 + 81920): (1, 20, "shared"),
            (80, 128, 32, 40 * 1024): (4, 16, "shared"),
            (90, 128, 32, 40 * 1024): (5, 20, "shared"),
        }.items():
            with self.subTest(figures):
                self.assertEqual(table.occupancy(*figures), expected)

    def test_RegistersComeInUnitsOfAWarpFromOnePartition(self):
        self.assertEqual(table.occupancy(80, 32, 128, 0)[1], 16)
        self.assertEqual(table.occupancy(80, 32, 129, 0)[1], 12)  # 136 a thread: 3 warps of a partition, not 15 of all
        self.assertEqual(table.occupancy(80, 32, 136, 0)[1], 12)


class PtxTest(unittest.TestCase):
    def test_FamilyOfEachOpcode(self):
        for name, opcodes in {
            "mma": "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
            "fma": "fma.rn.f32 fma.rn.ftz.bf16x2",
            "f32": "add.f32 mul.rn.f32 setp.lt.f32 ex2.approx.ftz.f32 rsqrt.approx.f32 neg.f32",
            "f64": "add.rn.f64 fma.rn.f64 setp.eq.f64",
            "integer": "add.s32 mad.lo.s32 mul.wide.u32 and.pred setp.ne.s64 shl.b32 bfi.b64 rem.u32",
            "convert": "cvt.rn.bf16x2.f32 cvt.u64.u32 cvt.f64.f32",
            "load": "ld.global.nc.v4.u32 ld.global.f32 ld.u8 ld.volatile.global.u32",
            "store": "st.global.v2.f32 st.u8 red.global.add.u32",
            "shared": "ld.shared.v4.f32 st.shared::cta.u32 ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 "
                      "cp.async.cg.shared.global atom.shared.add.u32",
            "shuffle": "shfl.sync.bfly.b32",
            "barrier": "bar.sync bar.warp.sync cp.async.wait_group cp.async.commit_group",
            "branch": "bra bra.uni call.uni",
            "rest": "mov.b32 selp.f32 ld.param.u64 ld.local.u64 st.local.v2.u32 cvta.to.global.u64 ret",
        }.items():
            for opcode in opcodes.split():
                self.assertEqual(table.family(opcode), name, opcode)

    def test_BytesOfAnAccess(self):
        sizes = {"ld.global.nc.v4.u32": 16, "st.global.v2.f32": 8, "ld.global.u16": 2, "st.u8": 1, "ld.global.f64": 8}
        self.assertEqual({opcode: table.access_bytes(opcode) for opcode in sizes}, sizes)

    def test_EveryInstructionOfABodyIsCountedOnce(self):
        (name, body), = table.entries(PTX.format(name="copy", arrays=0))
        self.assertEqual(name, "copy")
        self.assertEqual(list(table.opcodes(body)), ["ld.param.u64", "ld.global.nc.v4.f32", "cvt.rn.bf16.f32",
                                                     "st.shared.f32", "fma.rn.f32", "bra", "ret"])

    def test_SeveralEntriesEndAtTheirBraces(self):
        behind = ".visible .entry two()\n{\nret;\n}\n.section .debug_str\n{\n.b8 1;\n}\n"
        found = [(name, len(list(table.opcodes(body))))
                 for name, body in table.entries(PTX.format(name="one", arrays=0) + behind)]
        self.assertEqual(found, [("one", 7), ("two", 1)])


class NamesTest(unittest.TestCase):
    def test_NamesAreShortAndDiffer(self):
        space = "troupe::kernels::cuda::"
        hidden = space + "(anonymous namespace)::"
        bf16 = "troupe::kernels::simd::Bf16"
        for shown, demangled in {
            "forward_bf16<128>": f"void {hidden}forward_bf16<128>(troupe::kernels::AttentionSizes, float*)",
            "map_elements<8, AddScaled<Bf16>>":
                f"void {space}map_elements<8, {hidden}AddScaled<{bf16}>, {bf16}, {bf16}>(long, {bf16}*)",
            "map_elements<4, Same, Bf16, float>": f"void {space}map_elements<4, {hidden}Same, {bf16}, float>(long)",
            "map_elements<4, Same, float, Bf16>": f"void {space}map_elements<4, {hidden}Same, float, {bf16}>(long)",
            "rms_norm_rows<Wide<Bf16>>": f"void {hidden}rms_norm_rows<{space}Wide<{bf16}>, {bf16}>(unsigned int)",
            "add_runs": f"{hidden}add_runs(double const*, long, double*)",
        }.items():
            self.assertEqual(table.short_name(demangled), shown)

    def test_TwoKernelsOfOneNameAreRefused(self):
        with self.assertRaisesRegex(table.Failure, "several kernels would be shown as f"):
            table.short_names(["_ZN1a1fEv", "_ZN1b1fEv"])


class SourceTest(unittest.TestCase):
    """The figures of launches that the script repeats are those of the sources."""

    def test_ThreadsOfLaunchesWithoutBounds(self):
        chain = (ROOT / "kernels/image_chain.cu").read_text()
        self.assertIn("constexpr int kThreads = 256;", chain)
        for name in set(table.LAUNCHED) - {"add_runs"}:
            self.assertRegex(chain, rf"\b{name}<<<[^;]*, kThreads, 0, stream>>>")
        self.assertEqual(table.LAUNCHED["add_runs"], 1)
        self.assertIn("add_runs<<<1, 1, 0, stream>>>", (ROOT / "kernels/cuda/optimizer.cu").read_text())

    def test_DynamicSharedMemory(self):
        pipe = (ROOT / "kernels/cuda/row_pipe.h").read_text()
        self.assertIn("Form::kIsWide ? threads * 2 * 2 * Form::kN * 16 : 0;", pipe)
        wide = (ROOT / "kernels/cuda/row_block.h").read_text().partition("struct Wide {")[2]
        self.assertIn("kN = 2;", wide[:wide.index("};")])
        self.assertEqual(set(table.DYNAMIC.values()), {2 * 2 * 2 * 16})


if __name__ == "__main__":
    unittest.main()
