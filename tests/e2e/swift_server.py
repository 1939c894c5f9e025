"""OpenStack Swift with its S3 interface, all of it in one process on loopback: `swift_server.py FOLDER BUCKET` makes the
bucket and prints two ports: of the S3 interface, and of the proxy without it and without authentication, to look behind.

The proxy, its middleware and the servers of accounts, containers and objects are Debian's python3-swift, put together here
instead of by paste's files; one replica on one "disk", a folder, whose file system has to have extended attributes.
"""
import pathlib
import sys

import eventlet

eventlet.monkey_patch()

# pylint: disable=wrong-import-position
import eventlet.wsgi
from swift.account.server import AccountController
from swift.common import utils
from swift.common.middleware import bulk, catch_errors, gatekeeper, listing_formats, slo, tempauth
from swift.common.middleware.s3api import s3api
from swift.common.ring import RingBuilder
from swift.common.swob import Request
from swift.container.server import ContainerController
from swift.obj.server import ObjectController
from swift.proxy.server import Application

class Memory:
    """What Swift wants of memcached."""

    def __init__(self):
        self.values = {}

    def get(self, key, **_):
        return self.values.get(key)

    def set(self, key, value, **_):
        self.values[key] = value

    def delete(self, key, **_):
        self.values.pop(key, None)

    def incr(self, key, delta=1, **_):
        self.values[key] = self.values.get(key, 0) + delta
        return self.values[key]


def serve(app):
    """An application on a free port."""
    listener = eventlet.listen(("127.0.0.1", 0))
    eventlet.spawn(eventlet.wsgi.server, listener, app, log_output=False, debug=False)
    return listener.getsockname()[1]


def ring(folder, name, port):
    builder = RingBuilder(1, 1, 0)
    builder.add_dev({"region": 1, "zone": 1, "ip": "127.0.0.1", "port": port, "device": "disk", "weight": 1})
    builder.rebalance()
    builder.get_ring().save(str(folder / f"{name}.ring.gz"))


def main():
    folder = pathlib.Path(sys.argv[1])
    (folder / "devices" / "disk").mkdir(parents=True)
    utils.HASH_PATH_SUFFIX = b"tests"
    conf = {
        "swift_dir": str(folder), "devices": str(folder / "devices"), "mount_check": "false", "recon_cache_path": str(folder),
        "conn_timeout": "30", "node_timeout": "60", "client_timeout": "60", "allow_account_management": "true",
        "account_autocreate": "true", "user_test_tester": "testing .admin", "s3_acl": "false", "location": "us-east-1",
        "yield_frequency": "1",
    }
    for name, server in (("account", AccountController), ("container", ContainerController), ("object", ObjectController)):
        ring(folder, name, serve(server(conf)))
    app = proxy = Application(conf)
    for filter_of in (slo, bulk, tempauth, s3api, listing_formats, gatekeeper, catch_errors):
        app = filter_of.filter_factory(conf)(app)
    memory = Memory()

    def behind(environ, start_response):
        environ.update({"swift.cache": memory, "swift_owner": True})
        return slo.filter_factory(conf)(proxy)(environ, start_response)

    def in_front(environ, start_response):
        environ["swift.cache"] = memory
        # libcurl 8.22 writes the key id encoded, and Swift takes it as it stands. What is signed is the same.
        authorization = environ.get("HTTP_AUTHORIZATION", "")
        environ["HTTP_AUTHORIZATION"] = authorization.replace("Credential=test%3Atester/", "Credential=test:tester/")
        return app(environ, start_response)

    made = Request.blank(f"/v1/AUTH_test/{sys.argv[2]}", environ={"REQUEST_METHOD": "PUT"}).get_response(behind)
    assert made.status_int == 201, made.status
    print(serve(in_front), serve(behind), flush=True)
    while True:
        eventlet.sleep(3600)


if __name__ == "__main__":
    main()
