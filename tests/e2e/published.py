"""A dump as protoc decodes it with the field numbers that Perfetto publishes (perfetto.proto.txt)."""
import collections
import os
import pathlib
import subprocess

PROTO = pathlib.Path(__file__).resolve().with_name("perfetto.proto.txt")


class Message:
    """What protoc --decode printed: fields by name, in order; a field without a published number has its number for a name."""

    def __init__(self):
        self.fields = collections.defaultdict(list)

    def all(self, *path):
        """Every value at that path."""
        values = self.fields.get(path[0], [])
        return values if len(path) == 1 else [below for value in values for below in value.all(*path[1:])]

    def one(self, *path):
        (value,) = self.all(*path)
        return value

    def names(self):
        for name, values in self.fields.items():
            yield name
            for value in values:
                if isinstance(value, Message):
                    yield from value.names()


def text_of(value):
    """Bytes that are no ASCII stay as protoc writes them."""
    return value[1:-1].replace("\\'", "'").replace('\\"', '"')


def parse(text):
    """What protoc writes. A field without a name there, as damaged bytes have, may be a hexadecimal number."""
    top = Message()
    open_ones = [top]
    for line in text.splitlines():
        line = line.strip()
        if line.endswith("{"):
            inner = Message()
            open_ones[-1].fields[line[:-1].strip()].append(inner)
            open_ones.append(inner)
        elif line == "}":
            open_ones.pop()
        else:
            name, _, value = line.partition(": ")
            open_ones[-1].fields[name].append(text_of(value) if value.startswith('"') else value == "true" if value in ("true", "false") else int(value, 0))
    return top


def packet_ends(data):
    """Where each whole packet ends: up to there a file that is cut is a trace."""
    at = 0
    while at < len(data):
        size, shift, at = 0, 0, at + 1
        while True:
            byte = data[at]
            size, shift, at = size | (byte & 0x7f) << shift, shift + 7, at + 1
            if byte < 0x80:
                break
        at += size
        yield at


def trace(data):
    words = ["protoc", f"-I{PROTO.parent}", "--decode=published.Trace", str(PROTO)]
    answer = subprocess.run(words, input=data, capture_output=True, env={**os.environ, "LC_ALL": "C"}, check=False)
    if answer.returncode != 0:
        raise AssertionError(answer.stderr.decode(errors="replace"))
    return parse(answer.stdout.decode(errors="replace"))
