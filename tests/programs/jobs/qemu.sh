# qemu-system-x86 qemu-utils
$ON qemu-img create -q -f qcow2 a.qcow2 1G && $ON qemu-img bench -q -c 2000 -w a.qcow2 >/dev/null && $ON qemu-img check -q a.qcow2
(
    sleep 3
    echo quit
) | $ON qemu-system-x86_64 -M q35 -m 128 -nographic -monitor stdio -serial none -display none -smp 2 -accel tcg,thread=multi -drive file=a.qcow2,if=virtio >/dev/null 2>err
