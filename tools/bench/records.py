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


def save(path, record):
    """Replaced as a whole, so that an interrupted run leaves what was there."""
    temporary = f"{path}.new"
    pathlib.Path(temporary).write_text(json.dumps(record) + "\n")
    os.replace(temporary, path)
