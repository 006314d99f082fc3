# povray
printf 'camera{location <0,2,-3> look_at 0} light_source{<2,4,-3> rgb 1} sphere{0,1 pigment{bozo} finish{reflection 0.5}} plane{y,-1 pigment{checker}}' >a.pov
$ON povray +Ia.pov +Oo.png +W320 +H240 -D +WT4 >/dev/null 2>&1
R=$?
ls o.png
exit $R
