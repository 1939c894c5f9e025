"""The JSON file: {"memlog_bench": 1, "machines": {SERIES: machine}, "runs": [run]}; a series is one call of tools/bench/run."""
import json
import os
import pathlib

VERSION = 1


def empty():
    return {"memlog_bench": VERSION, "machines": {}, "runs": []}


def load(path):
    record = json.loads(pathlib.Path(path).read_text())
    if not isinstance(record, dict) or record.get("memlog_bench") != VERSION:
        raise ValueError(f"{path} is not a file of tools/bench/run")
    return record


def merge(records):
    """All of them as one; what stands in several is taken once."""
    merged = empty()
    for record in records:
        known = set(merged["machines"])
        merged["machines"].update(record["machines"])
        merged["runs"] += [run for run in record["runs"] if run["series"] not in known]
    return merged


def commit_of(record, run):
    return record["machines"].get(run["series"], {}).get("commit", "")


def newest(record, what_is=lambda commit: commit):
    """Without memlog's runs of another commit than its latest run of that program, size and configuration: a file that
    was added to after a change must not mix both. what_is(commit): the same for commits that measure the same."""
    latest = {}
    for run in record["runs"]:
        what = run["program"], run["size"], run["configuration"]
        if what not in latest or float(run["series"]) >= float(latest[what]["series"]):
            latest[what] = run

    def stays(run):
        if not run["configuration"].startswith("memlog"):
            return True
        last = latest[run["program"], run["size"], run["configuration"]]
        return what_is(commit_of(record, run)) == what_is(commit_of(record, last))

    return record | {"runs": [run for run in record["runs"] if stays(run)]}


def save(path, record):
    """Replaced as a whole, so that an interrupted run leaves what was there."""
    temporary = f"{path}.new"
    pathlib.Path(temporary).write_text(json.dumps(record) + "\n")
    os.replace(temporary, path)
