"""How the servers of the tests are started: words of a command line, in a folder of their own, reachable by nobody else."""
import os
import pathlib
import pwd
import random
import socket

# The newest that is here; each suite has another.
POSTGRES = max(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: int(folder.parent.name), default=pathlib.Path("/usr/lib/postgresql/bin"))
POSTGRES_VERSION = int(POSTGRES.parent.name) if POSTGRES.parent.name.isdigit() else 0

NGINX_CONF = """
daemon off; master_process on; worker_processes 2; pid {dir}/pid; error_log {dir}/error.log; {user}
events {{ worker_connections 64; }}
http {{
  access_log off; client_body_temp_path {dir}/a; proxy_temp_path {dir}/b; fastcgi_temp_path {dir}/c; uwsgi_temp_path {dir}/d;
  scgi_temp_path {dir}/e;
  server {{ listen 127.0.0.1:{port}; root {dir}/www; gzip on; gzip_types text/plain; }}
}}
"""


_ports = []  # held until this script ends


def free_port():
    """A port that nobody listens on, and that stays free until it is used: not one of those that the kernel gives to whoever connects,
    and not one of another script's that runs beside this."""
    for _ in range(1000):
        port = random.randrange(12000, 32000)
        turn = socket.socket(socket.AF_UNIX)
        try:
            turn.bind(f"\0memlog-test-port-{port}")
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("127.0.0.1", port))
        except OSError:
            turn.close()
            continue
        _ports.append(turn)
        return port
    raise AssertionError("no port is free")


def redis(folder):
    """Words; its socket is folder/redis.sock."""
    place = ("--port", "0", "--unixsocket", folder / "redis.sock", "--dir", folder)
    return ("redis-server", *place, "--save", "", "--appendonly", "no")


def nginx(folder, port):
    """Words; writes folder/pid, serves folder/www/page.txt."""
    (folder / "www").mkdir(parents=True)
    (folder / "www" / "page.txt").write_text("line of text\n" * 5000)
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "conf").write_text(NGINX_CONF.format(dir=folder, port=port, user=user))
    return ("nginx", "-p", folder, "-c", folder / "conf", "-e", folder / "early.log")


class Postgres:
    """A new server in folder/pg. It refuses root: `prefix` makes its own user of us then."""

    def __init__(self, folder):
        self.data = folder / "pg"
        self.data.mkdir()
        self.prefix = ()
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            self.prefix = ("setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups")
            os.chmod(folder, 0o755)
            os.chown(self.data, user.pw_uid, user.pw_gid)
        self.login = ("-h", self.data, "-U", "postgres")
        self.init = (*self.prefix, POSTGRES / "initdb", "-D", self.data / "db", "-N", "-A", "trust", "-U", "postgres")
        # Who cleans up comes once a minute, and is in nobody's way until then; so is nobody whose coming is a matter of the clock.
        options = ("-k", self.data, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "autovacuum_naptime=1d")
        if POSTGRES_VERSION >= 18:  # nor are workers, which come with what there is to read
            options += ("-c", "io_method=sync")
        self.words = (*self.prefix, POSTGRES / "postgres", "-D", self.data / "db", *options)
        self.is_ready = (POSTGRES / "pg_isready", "-q", *self.login)

    def pid(self):
        return int((self.data / "db" / "postmaster.pid").read_text().split()[0])
