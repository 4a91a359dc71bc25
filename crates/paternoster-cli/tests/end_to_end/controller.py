"""Has servers serve the volumes that a file wants, and none beside: `controller.py WANTED`.

WANTED has, for each server by the path of its control socket, the bodies of its volumes by name:

    {"/run/paternoster/ctl.sock": {"vm1": {"pool": "fast", "size": 1073741824, "weight": 200}}}

It is read again each second, and what differs is mended, one request after the other. Nothing is
remembered but which instance each socket was, beside WANTED: one that is another was installed
again, and its volumes are made anew, which is said as it is a loss of data. Whatever the controller
is killed at, the next compares and goes on. Volumes of a server's own file are left alone.
"""

import http.client
import json
import os
import socket
import sys
import time

PATIENCE_S = 10
PAUSE_S = 1
CHANGES = ("size", "weight", "description")  # others need another volume


class Refused(Exception):
    """An answer that is a problem, or none."""


class Socket(http.client.HTTPConnection):
    """HTTP to a unix socket."""

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE_S)
        self.sock.connect(self.host)


class Server:
    def __init__(self, path):
        self.path, self.instance = path, None

    def ask(self, method, resource, body=None):
        try:
            connection = Socket(self.path)
            connection.request(method, resource, json.dumps(body) if body else None, {"Host": "x"})
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise Refused(f"no answer: {error}") from error
        self.instance = answer.getheader("paternoster-instance")
        value = json.loads(text) if text else {}
        if answer.status >= 400:
            raise Refused(value["detail"])
        return value

    def volumes(self):
        """All that it has, by name, a page at a time."""
        found, after = {}, ""
        while after is not None:
            page = self.ask("GET", f"/v1/volumes?limit=100&after={after}")
            found.update({volume["name"]: volume for volume in page["volumes"]})
            after = page.get("next")
        return found

    def mend(self, wanted):
        """Does the next of what is to be done: for each volume one request at most."""
        there = self.volumes()
        for name in sorted(there.keys() | wanted.keys()):
            have, want = there.get(name), wanted.get(name)
            if have and (have["of_file"] or have["state"] in ("creating", "draining")):
                continue
            if have and (not want or have["pool"] != want["pool"] or have["state"] == "missing"):
                yield name, "DELETE", f"/v1/volumes/{name}?data=delete&drain=1s", None
            elif not have and want:
                yield name, "PUT", f"/v1/volumes/{name}", want
            elif have:
                keys = [key for key in CHANGES if key in want and want[key] != have.get(key)]
                patch = {key: want[key] for key in keys}
                if patch:
                    yield name, "PATCH", f"/v1/volumes/{name}", patch


def say(*words):
    print(*words, flush=True)


def note_instance(server, known, place):
    """Says so where a server is another than it was, and remembers it durably."""
    before = known.get(server.path)
    if server.instance == before:
        return
    if before:
        say(server.path, "was installed again: its volumes are made anew, and are empty")
    known[server.path] = server.instance
    with open(place + ".new", "w") as file:
        json.dump(known, file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(place + ".new", place)


def main(wanted):
    place = wanted + ".instances"
    known = json.load(open(place)) if os.path.exists(place) else {}
    while True:
        for path, volumes in json.load(open(wanted)).items():
            server, done = Server(path), 0
            try:
                for name, method, resource, body in server.mend(volumes):
                    note_instance(server, known, place)
                    done += 1
                    try:
                        server.ask(method, resource, body)
                        say(path, name, method)
                    except Refused as error:
                        say(path, name, method, "was refused:", error)
                note_instance(server, known, place)
                say(path, f"had {done} to mend")
            except Refused as error:
                say(path, error)
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    main(sys.argv[1])
