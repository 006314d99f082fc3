# tcl
$ON tclsh <<'X'
for {set i 0} {$i<200000} {incr i} {dict set d $i [string repeat x [expr {$i%100}]]}
puts [dict size $d]
X
