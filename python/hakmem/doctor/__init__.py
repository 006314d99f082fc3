"""What on this machine, in a process or in a program is in hakmem's way."""
