"""Has servers serve the volumes that a file wants: `controller.py WANTED`.

WANTED has, for each server by the path of its control socket, what is wanted of each volume: the
body of its PUT, or null if it is to be removed, with its data:

    {"/run/paternoster/ctl.sock": {"vm1": {"pool": "fast", "size": 1073741824}, "vm2": null}}

It is read again each second, and what differs is asked for, one request after the other. What the
file does not name is left alone. Nothing is ever made smaller. A volume whose image is missing is
opened again, not made anew.

A new controller compares and continues, wherever the last one was killed. All that it remembers,
beside WANTED, is the instance that each socket had: another one says that this server has lost its
records.
"""

import http.client
import json
import os
import socket
import sys
import time

PATIENCE_S = 10
PAUSE_S = 1


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
        """The requests that are to be made, one for each volume at most."""
        there = self.volumes()
        for name, want in sorted(wanted.items()):
            have, place = there.get(name), f"/v1/volumes/{name}"
            if have and (have["of_file"] or have["state"] in ("creating", "draining")):
                continue
            if want is None:
                if have:
                    yield name, "DELETE", f"{place}?data=delete&drain=1s", None
            elif have and have["state"] == "missing":
                say(self.path, name, "is missing:", have["why"])
                yield name, "POST", f"{place}/reopen", None
            elif have and have["size"] > want["size"]:
                say(self.path, name, "has", have["size"], "bytes and is not made smaller")
            elif not have or any(have.get(key) != value for key, value in want.items()):
                yield name, "PUT", place, want


def say(*words):
    print(*words, flush=True)


def note_instance(server, known, place):
    """Says so where a server is another than it was, and remembers that."""
    before = known.get(server.path)
    if server.instance is None:
        say(server.path, "does not say which instance it is")
    if server.instance in (None, before):
        return
    if before:
        say(server.path, "has lost its records: volumes are made anew")
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
