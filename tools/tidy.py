#!/usr/bin/env python3
"""clang-tidy over the sources of a compilation database: tools/tidy.py BUILD_DIR [--without DIR]... [--group N]

Most of what clang-tidy takes for a file goes into the headers that it includes, so up to N files of a folder that are
compiled alike (16) are checked together, as one file that includes them. Those whose names clash there (helpers of one
name in unnamed namespaces) are checked alone. Exits with 1 when there is something to mend.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Looks into every function of CLI11's headers, which takes as long as all other checks together.
SLOW_WITH_CLI11 = "-performance-unnecessary-value-param"
USES_CLI11 = re.compile(r"^#include <CLI/", re.MULTILINE)
COMPILE_ERROR = re.compile(r"^(/[^:\n]+):\d+:\d+: (?:fatal )?error: .*\[clang-diagnostic-error\]$", re.MULTILINE)
NO_FINDING = re.compile(r"^(\d+ (warning|error)s?.* generated|Suppressed \d+|Error while processing) ?.*\n", re.MULTILINE)

Alike = collections.namedtuple("Alike", "folder suffix options cli11")


def options_of(entry):
    """What the compiler is told, without the files and the compiler's own name."""
    words = shlex.split(entry["command"])
    compiler = next(i for i, word in enumerate(words) if re.search(r"(\+\+|cc|clang)(-\d+)?$", word) and "ccache" not in word)
    words = words[compiler + 1:]
    output = words.index("-o")
    return tuple(word for word in words[:output] + words[output + 2:] if word not in ("-c", entry["file"]))


def sources(build, without):
    """The files, by what they have in common."""
    found = collections.defaultdict(list)
    entries = {pathlib.Path(entry["file"]): entry for entry in json.loads((build / "compile_commands.json").read_text())}
    for path, entry in sorted(entries.items()):
        if not any(path.is_relative_to(folder) for folder in without):
            cli11 = bool(USES_CLI11.search(path.read_text()))
            found[Alike(path.parent, path.suffix, options_of(entry), cli11)].append(path)
    return found


def clang_tidy(file, alike, checks):
    # What a compiler would not take is an error here; GCC says more about the rest.
    command = ["clang-tidy", "--quiet", f"--checks={','.join(checks)}", str(file), "--", *alike.options, "-ferror-limit=0"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    said = NO_FINDING.sub("", run.stdout) + (NO_FINDING.sub("", run.stderr) if run.returncode != 0 else "")
    if run.returncode != 0 and not said.strip():
        said = f"{shlex.join(command)}: exit status {run.returncode}\n"
    return said


def check(alike, files, together):
    """(findings, files whose names clash with those of others); `together` is the file to write that includes them."""
    checks = [SLOW_WITH_CLI11] if alike.cli11 else []
    if len(files) == 1:
        return clang_tidy(files[0], alike, checks), []
    clashing = []
    while True:
        together.write_text("".join(f'#include "{file}"\n' for file in files))
        said = clang_tidy(together, alike, ["-*", "misc-static-assert"])  # quick: it is compiled, and hardly checked
        wrong = {file for file in files if str(file) in COMPILE_ERROR.findall(said)}
        if not said:
            said = clang_tidy(together, alike, [*checks, "-bugprone-suspicious-include"])
            together.unlink()
            return said, clashing
        if not wrong or files[0] in wrong or len(wrong) == len(files) - 1:  # not for want of a name
            together.unlink()
            return clang_tidy(files[0], alike, checks), clashing + files[1:]
        clashing += [file for file in files if file in wrong]
        files = [file for file in files if file not in wrong]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--without", action="append", default=[], help="a folder of the project to leave out")
    parser.add_argument("--group", type=int, default=16, help="files together at most (16)")
    given = parser.parse_args()
    build = given.build.resolve()
    left = sources(build, [build, *(ROOT / folder for folder in given.without)])
    if not left:
        sys.exit(f"{build}/compile_commands.json names no source")
    scratch = build / "tidy"
    scratch.mkdir(exist_ok=True)
    findings = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        size = max(1, given.group)
        while left:
            jobs = []
            for alike, files in left.items():
                # CLI11's headers take longest, and commands resemble one another too much.
                pieces = -(-len(files) // (size if alike.suffix == ".cpp" and not alike.cli11 else 1))
                jobs += [(alike, files[piece::pieces]) for piece in range(pieces)]
            jobs.sort(key=lambda job: -len(job[1]))
            left = collections.defaultdict(list)
            together = [scratch / f"together_{n}.cpp" for n in range(len(jobs))]
            for (alike, _), (said, clashing) in zip(jobs, pool.map(lambda job, file: check(*job, file), jobs, together)):
                findings += bool(said)
                print(said, end="", flush=True)
                if clashing:
                    left[alike] += clashing
            size = 1
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
