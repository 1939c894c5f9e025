"""A browser for tests: Debian's Chromium, driven by the scripts of tests/pages, over a folder served on loopback."""
import fcntl
import functools
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import threading

import harness

SCRIPTS = harness.ROOT / "tests" / "pages"
NODE = harness.PROGRAMS / "pages"  # the scripts with what package-lock.json names, outside of the source


# Of Debian's golang-src; Go moved it in 1.22.
PLACES = ("go-*/src/cmd/trace/static", "go-*/src/internal/trace/traceviewer/static")
CATAPULT = next((found for place in PLACES for found in sorted(pathlib.Path("/usr/share").glob(place))), pathlib.Path("/usr/share/go/static"))


def catapult(folder):
    """A new folder with catapult's trace viewer, which shows the trace.json.gz in it."""
    folder.mkdir()
    for name in ("trace_viewer_full.html", "webcomponents.min.js"):
        shutil.copy(CATAPULT / name, folder)
    shutil.copy(SCRIPTS / "catapult.html", folder)


def install():
    """npm's packages, once for each state of the lock file. Tests run beside each other: the first one brings them, others wait."""
    NODE.mkdir(parents=True, exist_ok=True)
    with open(NODE / ".lock", "w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        bring()


def bring():
    stamp = NODE / ".installed"
    lock = (SCRIPTS / "package-lock.json").read_text()
    for script in SCRIPTS.iterdir():
        copy = NODE / script.name
        if not copy.exists() or copy.read_bytes() != script.read_bytes():
            shutil.copy(script, copy)
    if stamp.exists() and stamp.read_text() == lock:
        return
    words = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    done = subprocess.run(words, cwd=NODE, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    stamp.write_text(lock)


def drive(script, url, shots, home, obey):
    """Run a script that gives orders (tests/pages/visit.js) and have them obeyed; its last line is what it saw."""
    shots.mkdir(exist_ok=True)
    env = {key: value for key, value in os.environ.items() if not key.startswith("MEMLOG_")}
    words = ["node", script, url, str(shots)]
    with subprocess.Popen(words, cwd=NODE, env={**env, "HOME": str(home)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as driver:
        said = {}
        try:
            for line in driver.stdout:
                said = json.loads(line)
                if "order" not in said:
                    break
                driver.stdin.write((obey(said["order"]) or "done") + "\n")
                driver.stdin.flush()
            _, err = driver.communicate(timeout=harness.TIMEOUT)
        finally:
            driver.kill()
    if driver.returncode != 0:
        raise AssertionError(err)
    return said


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def look(script, folder, path, screenshot=None):
    """Serve `folder`, let the script look at `path` in it; its answer."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        words = ["node", script, f"http://127.0.0.1:{server.server_port}/{path}"]
        if screenshot:
            words.append(str(screenshot))
        env = {key: value for key, value in os.environ.items() if not key.startswith("MEMLOG_")}
        answer = harness.run_words(words, NODE, {**env, "HOME": str(folder)}, b"", 240)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    if answer.returncode != 0:
        raise AssertionError(answer.stderr.decode(errors="replace"))
    return json.loads(answer.stdout)
