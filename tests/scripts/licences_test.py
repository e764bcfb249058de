"""Every library of the package has its licence."""
import pathlib
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def licence_of(path):
    return subprocess.run(["bash", "-euo", "pipefail", "-c", "source scripts/licences.sh; licence_of \"$1\"", "bash", path],
                          cwd=ROOT, capture_output=True, text=True, check=False)


class LicencesTest(unittest.TestCase):
    def test_a_file_of_lib_has_that_of_its_package(self):
        for library, package in {"libz.so.1": "zlib1g", "libgcc_s.so.1": "libgcc-s1", "libselinux.so.1": "libselinux1",
                                 "libexpat.so.1": "libexpat1", "libcairo.so.2": "libcairo2"}.items():
            found = licence_of(f"/lib/x86_64-linux-gnu/{library}")
            self.assertEqual(found.stdout, f"/usr/share/doc/{package}/copyright\n", found.stderr)

    def test_a_wheel_has_its_own(self):
        for library in ["torch/lib/libc10.so", "pyarrow/libarrow.so.2100", "mujoco/libmujoco.so.3.6.0",
                        "nvidia/cu13/lib/libcudart.so.13", "nvidia/cu13/lib/libcupti.so.13"]:
            found = licence_of(f".deps/{library}")
            self.assertTrue((ROOT / found.stdout.strip()).is_dir() and found.stdout, f"{library}: {found.stderr}")

    def test_a_library_of_nobody_is_refused(self):
        found = licence_of(__file__)
        self.assertEqual(found.returncode, 1)
        self.assertIn("its licence is not known", found.stderr)


if __name__ == "__main__":
    unittest.main()
