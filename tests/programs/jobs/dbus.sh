# dbus
$ON dbus-run-session -- sh -c 'for i in $(seq 30); do dbus-send --session --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.ListNames | wc -l; done' | sort -u
