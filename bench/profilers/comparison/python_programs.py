"""Programs of Python that hold memory at their end, for bench/profilers/lines.py."""

PROGRAMS = {
    "arrays": """\
import array, numpy as np
kept = []
def frames():
    for i in range(60):
        kept.append(np.zeros((100, 1000)) + i)
def sums():
    whole = np.concatenate([one[:10] for one in kept[:60]])
    kept.append(whole @ whole.T)
def buffers():
    for i in range(400):
        kept.append(bytearray(20000 + i))
def numbers():
    for i in range(200):
        kept.append(array.array("d", range(3000)))
def views():
    for one in list(kept[:60]):
        kept.append(one.astype(np.float32))
    kept.append(np.sort(np.random.rand(500000)))
def main():
    frames(); sums(); buffers(); numbers(); views()
main()
""",  # numpy, buffers
    "callbacks": """\
import re, sqlite3, threading, functools
kept = []
lock = threading.Lock()
def in_place(found):
    kept.append(found.group(0) * 30)
    return "b"
def by_key(number):
    kept.append("key %d" % number * 20)
    return -number
def joined(a, b):
    kept.append(f"{a}-{b}" * 15)
    return a + b
class Total:
    def __init__(self):
        self.seen = []
    def step(self, value):
        self.seen.append(value)
        kept.append([value] * 40)
    def finalize(self):
        return len(self.seen)
def database():
    base = sqlite3.connect(":memory:")
    base.create_function("joined", 2, joined)
    base.create_aggregate("total", 1, Total)
    base.execute("create table t (a text, b text)")
    base.executemany("insert into t values (?, ?)", ((f"a{i}", f"b{i}") for i in range(5000)))
    kept.append(base.execute("select joined(a, b) from t").fetchall())
    base.execute("select total(a) from t").fetchall()
    kept.append(base)
def texts():
    re.sub("[a-z]{20}", in_place, "abcdefghijklmnopqrstuvwxyz" * 4000)
def sorting():
    kept.append(sorted(range(8000), key=by_key))
def reducing():
    kept.append(functools.reduce(lambda a, b: a + [b], range(800), []))
def main():
    threads = [threading.Thread(target=one) for one in (database, texts, sorting, reducing)]
    for one in threads: one.start()
    for one in threads: one.join()
main()
""",  # C that calls Python, in threads
    "growth": """\
class Session:
    def __init__(self, number):
        self.number = number
        self.items = list(range(50))
        self.attributes = {"a": number, "b": str(number)}
cache, index, log = {}, {}, []
def remember(number):
    cache[number] = Session(number)
def note(number):
    index.setdefault(number % 997, []).append("line %d of the log" % number)
def write(number):
    log.append((number, "entry" + str(number) * 4))
def words():
    return {f"word{i}": i for i in range(60000)}
def main():
    for number in range(30000):
        remember(number); note(number); write(number)
    global dictionary
    dictionary = words()
main()
""",  # objects, dictionaries, lists
    "json_heavy": """\
import json
kept = []
def document(number):
    return {"id": number, "name": f"user {number}", "tags": [f"t{i}" for i in range(10)],
            "history": [{"at": i, "what": "login" * 3} for i in range(10)]}
def encode(number):
    return json.dumps(document(number))
def decode(text):
    return json.loads(text)
def main():
    for number in range(4000):
        text = encode(number)
        kept.append(decode(text))
        if number % 4 == 0:
            kept.append(text)
main()
""",  # documents
    "tasks": """\
import asyncio
kept = []
async def fetch(number):
    await asyncio.sleep(0)
    body = bytes(3000 + number % 100)
    await asyncio.sleep(0)
    return {"number": number, "body": body}
def chunks(n):
    for i in range(n):
        yield ["chunk", i, "x" * 500 + str(i)]
async def worker(start):
    for number in range(start, start + 100):
        kept.append(await fetch(number))
    kept.extend(chunks(300))
def squares(n):
    return [number * number * 10**12 for number in range(n)]
async def main():
    await asyncio.gather(*(worker(100 * i) for i in range(40)))
    kept.append(squares(100000))
    kept.append({number: str(number) for number in range(30000)})
    kept.append(list(map(str, range(30000))))
asyncio.run(main())
""",  # coroutines, generators
}
