"""The toy tree of Fed-EINI's Figure 4, equations 11 and 12."""

from backend.trees.ensemble import Fork, Skeleton, SplitRule

# Figure 4: the sample fails GF1 and GF2 at the Guest (so it goes left), and HF4 and HF7 at the Host.
#            GF1(0)
#        GF2(1)      HF7(2)
#     HF4(3) L3(4)  L4(5)  GF6(6)
#    L1(7) L2(8)        L5(9) L6(10)
TOY = Skeleton(
    {
        0: Fork("guest", 1, 2),
        1: Fork("guest", 3, 4),
        2: Fork("host", 5, 6),
        3: Fork("host", 7, 8),
        6: Fork("guest", 9, 10),
    }
)
GUEST_RULES = {
    (0, 0): SplitRule("g1", True, 5.0),
    (0, 1): SplitRule("g2", True, 5.0),
    (0, 6): SplitRule("g6", True, 5.0),
}
HOST_RULES = {(0, 2): SplitRule("h7", True, 5.0), (0, 3): SplitRule("h4", True, 5.0)}
