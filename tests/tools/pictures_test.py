"""tools/dev/pictures: PNGs as Chromium writes them are read, and written with the colours that are most of them."""
import importlib.machinery
import importlib.util
import pathlib
import struct
import unittest
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LOADER = importlib.machinery.SourceFileLoader("pictures", str(ROOT / "tools" / "dev" / "pictures"))
pictures = importlib.util.module_from_spec(importlib.util.spec_from_loader("pictures", LOADER))
LOADER.exec_module(pictures)


def filtered(kind, row, above, pixel):
    """A row of a PNG, by its filter."""
    out = bytearray([kind])
    for i, value in enumerate(row):
        left = row[i - pixel] if i >= pixel else 0
        corner = above[i - pixel] if i >= pixel else 0
        paeth = min((left, above[i], corner), key=lambda one: abs(left + above[i] - corner - one))
        out.append((value - (0, left, above[i], (left + above[i]) // 2, paeth)[kind]) & 255)
    return bytes(out)


def png(rows, kinds, alpha):
    """One of these rows of RGB, each by its filter."""
    pixel = 4 if alpha else 3
    data, above = b"", bytes(len(rows[0]) * pixel)
    for row, kind in zip(rows, kinds):
        line = b"".join(bytes(colour) + (b"\xff" if alpha else b"") for colour in row)
        data += filtered(kind, line, above, pixel)
        above = line

    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    head = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 6 if alpha else 2, 0, 0, 0)
    packed = zlib.compress(data)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", packed[:9]) + chunk(b"IDAT", packed[9:]) + chunk(b"IEND", b"")


def palette_of(picture):
    """(colours, rows of them) of a PNG with a palette and no filters."""
    at, found = 8, {}
    while at < len(picture):
        size, name = struct.unpack(">I4s", picture[at:at + 8])
        body = picture[at + 8:at + 8 + size]
        assert struct.unpack(">I", picture[at + 8 + size:at + 12 + size])[0] == zlib.crc32(name + body)
        found[name] = body
        at += size + 12
    colours = [tuple(found[b"PLTE"][i:i + 3]) for i in range(0, len(found[b"PLTE"]), 3)]
    width, height = struct.unpack(">II", found[b"IHDR"][:8])
    raw = zlib.decompress(found[b"IDAT"])
    return colours, [[colours[index] for index in raw[row * (width + 1) + 1:(row + 1) * (width + 1)]] for row in range(height)]


class Pictures(unittest.TestCase):
    ROWS = [[((x * 37 + y * 11) % 256, (x * y * 5) % 256, (200 + x - y) % 256) for x in range(7)] for y in range(5)]

    def test_reads_every_filter_with_and_without_alpha(self):
        for alpha in (False, True):
            self.assertEqual(pictures.unpack(png(self.ROWS, (0, 1, 2, 3, 4), alpha)), (7, 5, self.ROWS))
            self.assertEqual(pictures.unpack(png(self.ROWS, (4, 3, 2, 1, 0), alpha)), (7, 5, self.ROWS))

    def test_few_colours_stay_as_they_are(self):
        colours, rows = palette_of(pictures.pack(7, 5, self.ROWS))
        self.assertEqual(rows, self.ROWS)
        self.assertLessEqual(len(colours), 35)

    def test_of_many_colours_the_rare_ones_become_their_nearest(self):
        rows = [[(x, 0, 0)] * 2 for x in range(256)] + [[(7, 1, 0), (200, 0, 2)]]
        colours, drawn = palette_of(pictures.pack(2, 257, rows))
        self.assertEqual(len(colours), 256)
        self.assertEqual(drawn[-1], [(7, 0, 0), (200, 0, 0)])
        self.assertEqual(drawn[:-1], rows[:-1])


if __name__ == "__main__":
    unittest.main()
