# tor
$ON tor --verify-config --DataDirectory $WORK/d >/dev/null 2>&1
echo $?
timeout 5 $ON tor --DataDirectory $WORK/d --SocksPort 18086 --DisableNetwork 1 >log 2>&1
true
