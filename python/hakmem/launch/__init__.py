"""How a program is launched on hakmem: whether that works, and whether its report came."""
