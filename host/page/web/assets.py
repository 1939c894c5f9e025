#!/usr/bin/env python3
"""assets.py [--table=HEADER:NAME] OUTPUT PACKAGES PATH=FILE...: a page's files as C, for the table NAME that HEADER declares.

Without --table it is host/page/assets.h:ml_page_assets.

A FILE of the form npm:NAME is one of an npm package: package-lock.json beside this script names its version and checksum, and npm
brings it into the folder PACKAGES, once for each state of the lock file. Nothing is taken from anywhere else, and the finished page
asks nobody but memlog for anything. Where npm cannot bring it, memlog is built all the same: the page goes without, and says so.
"""
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
TIMEOUT_S = 300
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
}


def install(folder):
    """None, or why the packages are not there."""
    lock = (HERE / "package-lock.json").read_text()
    stamp = folder / ".installed"
    if stamp.exists() and stamp.read_text() == lock:
        return None
    if not shutil.which("npm"):
        return "npm is missing; tools/dev/setup installs it (Debian's package npm)"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, folder / name)
    words = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--fetch-retries=1", "--fetch-timeout=30000"]
    try:
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return f"npm brought nothing within {TIMEOUT_S} s"
    if done.returncode != 0:
        return f"npm could not bring what package-lock.json names: {done.stderr.strip()}"
    stamp.write_text(lock)
    return None


def array(name, content):
    lines = [f"static const char {name}[] = {{"]
    for start in range(0, len(content), 24):
        lines.append("    " + ", ".join(str(byte if byte < 128 else byte - 256) for byte in content[start:start + 24]) + ",")
    return [*lines, "    0,", "};"]


def main():
    words = sys.argv[1:]
    header, _, table = (words.pop(0).partition("=")[2] if words[0].startswith("--table=") else "host/page/assets.h:ml_page_assets").partition(":")
    output, packages, *pairs = words
    packages = pathlib.Path(packages)
    trouble = install(packages) if any("=npm:" in pair for pair in pairs) else None
    if trouble:
        print(f"memlog: the page is built without its chart: {trouble}. To try again: rm {output}", file=sys.stderr)
    lines = ["/* Made by host/page/web/assets.py; not to be edited. */", f'#include "{header}"', ""]
    rows = []
    for number, pair in enumerate(pairs):
        path, _, name = pair.partition("=")
        is_brought = name.startswith("npm:")
        file = packages / "node_modules" / name[4:] if is_brought else pathlib.Path(name)
        content = b"" if is_brought and trouble else file.read_bytes()
        lines += [*array(f"asset_{number}", content), ""]
        rows.append(f'    {{"{path}", "{TYPES[file.suffix]}", asset_{number}, {len(content)}}},')
    lines += [f"const struct ml_http_asset {table}[] = {{", *rows, "    {0, 0, 0, 0},", "};", ""]
    pathlib.Path(output).write_text("\n".join(lines))


if __name__ == "__main__":
    main()
