"""What the kernels of 2.6.35 to 2.6.37 do otherwise than v4.20: a named decision for each (27)."""
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Kernel:
    """The values given here are v4.20's."""
    ticks: bool = False                     # the clock counts ticks, not ns
    side_by_side: bool = False              # no hierarchy: the root and all groups are equals
    group_isolation: bool = False           # has the tunable: queues may move to the root
    async_in_root: bool = False             # the device's async queues, not each group's
    iops_mode: bool = True                  # charges requests where nothing is waited for
    requests_as_ticks: bool = False         # charges them for ticks where a turn had no slice
    step_g_thinks: bool = True              # step G asks for the group's think time
    ssd_waits_for_group: bool = True        # group idling on a non-rotational queueing device
    group_wait_thinks: bool = True          # arming for a group asks for the tree's think time
    arms_only_at_need: bool = False         # arms only where the flag of the device says so
    slice_trace: bool = False               # a line `slice_used` at each expiry


V4_20 = Kernel()
V2_6_37 = Kernel(ticks=True, side_by_side=True, group_isolation=True, async_in_root=True,
                 step_g_thinks=False, ssd_waits_for_group=False, group_wait_thinks=False,
                 slice_trace=True)
V2_6_36 = replace(V2_6_37, arms_only_at_need=True)
SEED_2_6_35 = replace(V2_6_36, iops_mode=False, requests_as_ticks=True)

KERNELS = {"2.6.35-seed": SEED_2_6_35, "2.6.36": V2_6_36, "2.6.37": V2_6_37}
