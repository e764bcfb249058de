"""Every command that README.md and docs/*.md show is in a fenced block and runs as written, in order, from an empty folder.

  python3 -B tests/docs/documented_commands_test.py build/release/app/troupe [--full] [PAGE ...]

--full runs at full length; otherwise TROUPE_SET shortens jobs as SHORTER says. PAGE is README.md or a file of docs: these
pages are run, and not checked for their form. The dataset behind /data/my-robot is $TROUPE_SHARED_DATA/gr1-pick-place;
where there is none, its lines are named and skipped.
"""
import argparse
import glob
import os
import shutil
import signal
import sys
import tempfile

from page_check import Binary, find_mistakes
from page_commands import Page
from page_run import Failed, PageRun

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
SHARED = os.environ.get("TROUPE_SHARED_DATA") or os.path.join(ROOT, "..", "shared", "data")
# TROUPE_SET of a page; pages that are not named run at full length. It holds for every job of the page, stronger than the
# job's files and weaker than overrides that the page shows. eval.every would be refused where a job has no held-out
# episodes.
SHORTER = {
    "README.md": "training.steps=2 eval.max_samples=2 eval.episodes=2",
    "docs/bridge.md": "training.steps=2 eval.episodes=2",
    "docs/commands.md": "training.steps=2 eval.max_samples=2 eval.episodes=2",
    "docs/data.md": "training.steps=4 eval.every=4 eval.max_samples=2",
    "docs/evaluation.md": "training.steps=2 eval.every=2 checkpoint.interval=2 eval.max_samples=2",
    "docs/fault-points.md": "training.steps=4 eval.every=4 eval.max_samples=2",
    "docs/features.md": "training.steps=4 eval.every=4 eval.max_samples=2",
    "docs/gpu.md": "training.steps=2 eval.max_samples=2",
    "docs/rl.md": "training.steps=1 eval.every=1 checkpoint.interval=1 eval.max_samples=2 eval.episodes=2",
    "docs/serve.md": "training.steps=2 eval.episodes=2",
    "docs/sweeps.md": "training.steps=2 eval.episodes=2",
    "docs/tutorial.md": "training.steps=4 eval.every=4 eval.max_samples=2",
}
DEADLINE_S, FULL_DEADLINE_S = 300, 3600


def read_pages():
    names = ["README.md"] + sorted(f"docs/{os.path.basename(p)}" for p in glob.glob(os.path.join(ROOT, "docs", "*.md")))
    pages = {}
    for name in names:
        with open(os.path.join(ROOT, name)) as text:
            pages[name] = Page(name, text.read())
    return pages


def planted_mistakes_are_found(binary):
    """The check itself: each of these pages has one mistake, which must be told; the first has none."""
    wrong = {
        "": ["```\nbin/troupe plan quickstart:sft --json\n```\nSee `troupe plan`, `troupe run JOB --resume auto`.\n",
             "`scripts/test --slow` takes all; `training.steps` says how far; `job.yaml` is a file.\n"],
        "has no flag --jsn": ["```\nbin/troupe plan quickstart:sft --jsn\n```\n",
                              *(f"{fence}\n{prompt} plan quickstart:sft --jsn\n{fence[:3]}\n"
                                for fence in ("```", "```sh", "```console", "```shell", "```zsh", "```text", "~~~")
                                for prompt in ("$ troupe", "./bin/troupe", "/opt/x/bin/troupe", "cd x && troupe",
                                               "sudo troupe", "A=1 troupe", "time troupe", "true; troupe"))],
        "has no flag --resme": ["Then `troupe run JOB --resme auto`.\n"],
        "has no flag -Z": ["Then `troupe run JOB -Z`.\n"],
        "has no flag --Bogus": ["Then `troupe run JOB --Bogus`.\n"],
        "no verb has a flag --everything": ["It takes `--everything`.\n"],
        "no verb has a flag --slow": ["It takes `--slow`.\n"],
        "has no flag --everything": [
            "<!-- flags of other programs -->\n\n`--all-of-it` is `troupe run JOB --everything`.\n"],
        "has no verb train": ["```\ntroupe train quickstart:sft\n```\n"],
        "a job has no key training.stepz": ["Say `training.stepz`.\n", "Say `training.stepz=3`.\n",
                                            "Say `troupe run JOB training.stepz=3`.\n",
                                            "```\ntroupe plan quickstart:sft --training.stepz=3\n```\n"],
        "indented; write it": [f"Text\n\n{indent}troupe run quickstart:sft\n" for indent in ("    ", "\t", "    $ ")],
        "inline; write it": ["Then `troupe scale decoder=8`.\n"],
        "nobody can type the prompt": ["```\n$ troupe runs\n```\n"],
        "a usage line among commands": ["```\ntroupe runs\ntroupe status RUN\n```\n"],
        "a command in a block of output": ["<!-- prints -->\n```\ntroupe status --all\n```\n"],
        "expected published weights": ["<!-- not run: it is slow -->\n```\ntroupe verify runs/a\n```\n"],
        "lines are not run": ["<!-- not run: a GPU -->\n```\n" + "troupe verify\n" * 11 + "```\n"],
    }
    missed = []
    for expected, texts in wrong.items():
        for text in texts:
            found = find_mistakes([Page("planted", text)], binary)
            if (expected == "") != (not found) or expected and not any(expected in mistake for mistake in found):
                missed.append(f"planted {text!r}: expected {expected or 'no mistake'!r}, found {found}")
    for line in ("troupe plan JOB=X.yaml", "troupe run a.yaml job.name=X", "troupe run a.yaml data.embodiment.views=[a]",
                 "troupe run ... x"):
        if Page("planted", f"```\n{line}\n```\n").shown[0].is_usage():
            missed.append(f"planted {line!r}: taken for a usage line, which nobody runs")
    return missed


def run_page(page, pages, options):
    folder = tempfile.mkdtemp(prefix="troupe-docs-")
    dataset = os.path.join(SHARED, "gr1-pick-place")
    try:
        run = PageRun(page, pages, os.path.join(folder, "page"), os.path.realpath(options.program),
                      dataset if os.path.isdir(dataset) else None,
                      "" if options.full else SHORTER.get(page.name, ""), FULL_DEADLINE_S if options.full else DEADLINE_S)
        run.run()
        for line in run.skipped:
            print(f"  skipped, no {dataset}: {line}", flush=True)
        return []
    except Failed as failure:
        return [str(failure)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("program")
    arguments.add_argument("--full", action="store_true")
    arguments.add_argument("--check-only", action="store_true", help="form, verbs and flags; runs nothing")
    arguments.add_argument("pages", nargs="*")
    options = arguments.parse_args()
    # Ended from outside, the commands under way end too: `finally` and `except` see it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    pages, mistakes = read_pages(), []
    unknown = [name for name in options.pages if name not in pages]
    if unknown:
        sys.exit(f"no such page: {', '.join(unknown)}; PAGE is README.md or a file of docs")
    if not options.pages:
        binary = Binary(options.program)
        mistakes += planted_mistakes_are_found(binary) + find_mistakes(list(pages.values()), binary)
    for page in pages.values():
        if not options.check_only and page.shell_blocks() and (not options.pages or page.name in options.pages):
            mistakes += run_page(page, pages, options)
    for mistake in mistakes:
        print(mistake, flush=True)
    print(f"{len(mistakes)} mistakes")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
