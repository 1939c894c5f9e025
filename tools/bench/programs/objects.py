"""bench: python objects of many kinds, made and dropped: objects.py ROUNDS."""
import json
import re
import sys


class Node:
    def __init__(self, key, value):
        self.key = key
        self.value = value
        self.children = []


def tree(depth, width):
    node = Node(f"node-{depth}", depth)
    if depth:
        node.children = [tree(depth - 1, width) for _ in range(width)]
    return node


def words(count):
    return [f"{i:x}-{i * 7919 % 1000003}" for i in range(count)]


def work():
    kept = tree(5, 5)
    text = json.dumps({word: [word, len(word), {"of": word[::-1]}] for word in words(4000)})
    back = json.loads(text)
    found = re.findall(r"[0-9a-f]+-(\d+)", text)
    counts = {}
    for number in found:
        counts[number[-3:]] = counts.get(number[-3:], 0) + 1
    lines = sorted(f"{key}: {value[0].upper()}".split(":")[1] for key, value in back.items())
    return len(lines) + len(counts) + len(kept.children)


def main():
    total = 0
    for _ in range(int(sys.argv[1])):
        total += work()
    print(total)


main()
