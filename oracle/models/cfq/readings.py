"""What the description leaves open: the reading taken, and the others that `--reading` can choose.

The numbers are those of README.md.
"""

READINGS = {
    "flat-type": ("placed", "vtime", "key"),             # 1
    "front-placed": ("first", "now", "kept"),            # 2
    "iops-jump": ("none", "written"),                    # 3
    "uncharged": ("stays", "behind", "untouched"),       # 4
    "idle-class": ("last", "shortcut"),                  # 5
    "fresh-expiry": ("average", "nothing"),              # 6
    "flat-span": ("divided", "fraction"),                # 7
    "average": ("entities", "queues"),                   # 8
    "emptied": ("entities", "queues"),                   # 9
    "flat-delay": ("v4.20", "2.6.37"),                   # 10
    "preempted-span": ("group", "path"),                 # 11
    "nobody-else-sync": ("queues", "entities"),          # 12
    "group-placed": ("charged", "joined"),               # 13
    "group-tree": ("windowless", "sync"),                # 26
    # of the kernels of 27
    "idle-key": ("now", "last"),                         # K1
    "idle-class-moves": ("yes", "no"),                   # K2
    "ancestors": ("none", "v4.20"),                      # K3
    "b-first-test": ("kept", "gone"),                    # K4
    "g-think": ("never", "from-b"),                      # K5
}


def default_readings():
    return {name: choices[0] for name, choices in READINGS.items()}


def parse_readings(given):
    readings = default_readings()
    for text in given:
        name, _, value = text.partition("=")
        if value not in READINGS.get(name, ()):
            known = "; ".join("%s=%s" % (n, "|".join(c)) for n, c in READINGS.items())
            raise SystemExit("no reading %r: %s" % (text, known))
        readings[name] = value
    return readings
