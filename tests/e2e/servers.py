"""How the servers of the tests are started: words of a command line, in a folder of their own, reachable by nobody else."""
import os
import pathlib
import pwd
import socket

POSTGRES = pathlib.Path("/usr/lib/postgresql/15/bin")

NGINX_CONF = """
daemon off; master_process on; worker_processes 2; pid {dir}/pid; error_log {dir}/error.log; {user}
events {{ worker_connections 64; }}
http {{
  access_log off; client_body_temp_path {dir}/a; proxy_temp_path {dir}/b; fastcgi_temp_path {dir}/c; uwsgi_temp_path {dir}/d;
  scgi_temp_path {dir}/e;
  server {{ listen 127.0.0.1:{port}; root {dir}/www; gzip on; gzip_types text/plain; }}
}}
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


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
        options = ("-k", self.data, "-c", "listen_addresses=", "-c", "fsync=off")
        self.words = (*self.prefix, POSTGRES / "postgres", "-D", self.data / "db", *options)
        self.is_ready = (POSTGRES / "pg_isready", "-q", *self.login)

    def pid(self):
        return int((self.data / "db" / "postmaster.pid").read_text().split()[0])
