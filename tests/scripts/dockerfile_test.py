"""The Dockerfile runs what scripts/setup and its neighbours are."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class DockerfileTest(unittest.TestCase):
    def test_every_script_that_it_runs_is_there(self):
        commands = re.findall(r"^RUN (.*)$", (ROOT / "Dockerfile").read_text(), re.M)
        scripts = [c for c in commands if c.startswith("scripts/")]
        self.assertEqual([c.split()[0] for c in scripts], ["scripts/setup", "scripts/build", "scripts/package"])
        for command in scripts:
            path = ROOT / command.split()[0]
            self.assertTrue(path.stat().st_mode & 0o100, f"{path} cannot be executed")

    def test_both_stages_are_the_debian_that_setup_is_for(self):
        images = re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(), re.M)
        self.assertEqual([i.split(":")[1].split("-")[0] for i in images], ["bookworm", "bookworm"])


if __name__ == "__main__":
    unittest.main()
