"""Servers of ClickHouse, of Debian's package, each with a folder of its own; and a link to one that can be cut."""
import random
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

import harness
from servers import free_port

SERVER = shutil.which("clickhouse-server", path="/usr/sbin:/usr/bin:/usr/local/bin")

CONFIG = """<yandex>
<logger><level>warning</level><log>{folder}/server.log</log><errorlog>{folder}/errors.log</errorlog></logger>
<http_port>{http}</http_port><tcp_port>{tcp}</tcp_port><listen_host>127.0.0.1</listen_host>
<mark_cache_size>67108864</mark_cache_size><max_concurrent_queries>50</max_concurrent_queries>
<path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path><user_files_path>{folder}/files/</user_files_path>
<format_schema_path>{folder}/files/</format_schema_path>
<users_config>{folder}/users.xml</users_config><default_profile>default</default_profile><default_database>default</default_database>
<remote_servers><memlog>{shards}</memlog></remote_servers>
</yandex>
"""
SHARD = "<shard><replica><host>127.0.0.1</host><port>{tcp}</port><user>{user}</user><password>{password}</password></replica></shard>"
USERS = """<yandex><profiles><default><max_memory_usage>2000000000</max_memory_usage><max_threads>2</max_threads></default></profiles>
<users><{user}><password>{password}</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></{user}></users>
<quotas><default></default></quotas></yandex>
"""


class Server:
    def __init__(self, folder, user="default", password=""):
        self.folder, self.user, self.password = folder, user, password
        self.http, self.tcp = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.http}"
        self.process = None

    def configure(self, servers):
        for name in ("data", "tmp", "files"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        shards = "".join(SHARD.format(tcp=one.tcp, user=one.user, password=one.password) for one in servers)
        (self.folder / "config.xml").write_text(
            CONFIG.format(folder=self.folder, http=self.http, tcp=self.tcp, shards=shards), encoding="utf-8")
        (self.folder / "users.xml").write_text(USERS.format(user=self.user, password=self.password), encoding="utf-8")

    def start(self):
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [SERVER, f"--config-file={self.folder}/config.xml"], cwd=self.folder,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        deadline = time.monotonic() + harness.TIMEOUT
        while True:
            try:
                self.ask("SELECT 1")
                return self
            except OSError as error:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError(f"no server: {(self.folder / 'errors.log').read_text(encoding='utf-8')[-2000:]}") from error
                time.sleep(0.05)

    def stop(self, number=signal.SIGKILL):
        if self.process is not None:
            if self.process.poll() is None:
                self.process.send_signal(number)
            self.process.wait(harness.TIMEOUT)
            self.process = None

    def ask(self, sql):
        request = urllib.request.Request(self.url + "/?wait_end_of_query=1", data=sql.encode())
        request.add_header("X-ClickHouse-User", self.user)
        request.add_header("X-ClickHouse-Key", self.password)
        try:
            with urllib.request.urlopen(request, timeout=harness.TIMEOUT) as answer:
                return answer.read().decode().rstrip("\n")
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()[:1000]) from error


def servers(folder, count=2, **who):
    """So many, that know each other as the cluster memlog; not started."""
    made = [Server(folder / f"click{number}", **who) for number in range(count)]
    for one in made:
        one.configure(made)
    return made


class Link:
    """Passes bytes on to a server, and cuts connections by chance: in a request, or in the answer to it; or holds all up."""

    def __init__(self, server, chance):
        self.server, self.chance = server, chance
        self.share = 0.0  # of connections that are cut
        self.cuts = 0
        self.is_open = threading.Event()  # not set: what comes is taken, and nothing of it passed on
        self.is_open.set()
        self.held = 0  # pieces that wait
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def close(self):
        self.is_open.set()
        self.listener.close()

    def hold(self):
        self.is_open.clear()

    def release(self):
        self.held = 0
        self.is_open.set()

    def run(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, near):
        left = [None, None]  # bytes that pass before it is cut, each way
        if self.chance.random() < self.share:
            self.cuts += 1
            if self.chance.random() < 0.5:
                left[0] = self.chance.choice([0, 100, 600, 5000, random.randrange(20000)])
            else:
                left[1] = 0  # the whole request arrives; what it is answered does not
        try:
            far = socket.create_connection(("127.0.0.1", self.server.http))
        except OSError:
            near.close()
            return
        back = threading.Thread(target=self.pass_on, args=(far, near, left[1]), daemon=True)
        back.start()
        self.pass_on(near, far, left[0])
        back.join()
        near.close()
        far.close()

    def pass_on(self, source, sink, left):
        try:
            while True:
                some = source.recv(65536)
                if some and not self.is_open.is_set():
                    self.held += 1
                    self.is_open.wait()
                if left is not None and len(some) > left:
                    sink.sendall(some[:left])
                    break
                if not some:
                    break
                if left is not None:
                    left -= len(some)
                sink.sendall(some)
        except OSError:
            pass
        for one in (source, sink):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
