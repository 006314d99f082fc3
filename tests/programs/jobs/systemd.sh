# systemd udev
$ON systemd-analyze --version | head -1
$ON systemd-analyze calendar daily | head -2
$ON systemd-analyze verify /lib/systemd/system/*.service 2>&1 | grep -ci hakmem
$ON udevadm hwdb --test=x
$ON journalctl --verify 2>&1 | grep -i hakmem
true
