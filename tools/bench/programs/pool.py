"""A tree of processes: objects and JSON in a pool of two. Usage: pool.py ROUNDS"""
import json
import multiprocessing
import sys


def work(seed):
    kept = [json.loads(json.dumps({"seed": seed, "text": "x" * (number % 50), "values": list(range(number % 20))})) for number in range(4000)]
    return sum(len(one["values"]) for one in kept)


if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(sum(pool.map(work, range(int(sys.argv[1])), chunksize=1)))
        pool.close()
        pool.join()
