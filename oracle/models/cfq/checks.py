"""What must hold after every event (30), for `--check`."""
from by_vdisktime import Entities
from objects import BE, SYNC, Queue


def check(cfq, device_full):
    groups = list(cfq.groups.values())
    for g in groups:
        for tree in g.all_trees():
            assert tree.keys == sorted(tree.keys)
            for entity, key in zip(tree.entities, tree.keys):
                check_entity(g, tree, entity, key)
        check_group(cfq, g)
    assert cfq.busy == sum(g.n_queues for g in groups)
    queues = [e for g in groups for t in g.all_trees() for e in t.entities
              if isinstance(e, Queue)]
    assert cfq.busy == len(queues)
    assert cfq.busy_sync == sum(q.sync for q in queues)
    assert cfq.rq_queued == sum(q.queued for q in queues)
    assert cfq.in_driver == sum(cfq.sent.values())
    assert cfq.active is None or cfq.active.listed
    waits = cfq.timer.armed() or cfq.in_driver or device_full
    assert not cfq.rq_queued or waits, "stuck"


def check_entity(g, tree, entity, key):
    if isinstance(entity, Queue):
        assert entity.listed and entity.tree is tree and entity.group is g
        assert entity.key == key and entity.queued == len(entity.fifo)
        assert (entity.next is None) == entity.empty()
    else:
        assert entity.parent is g and entity.on_tree and entity.vtime == key
        assert tree is g.trees[BE][SYNC]


def check_group(cfq, g):
    below = [x for x in cfq.groups.values() if x.is_in_or_below(g)]
    if isinstance(cfq.h, Entities):
        assert g.n_below == sum(x.n_queues for x in below)
        assert g.on_tree == (g.n_below > 0 and g.parent is not None)
    else:
        assert g.on_tree == (g.n_queues > 0)
